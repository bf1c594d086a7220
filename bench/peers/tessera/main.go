// Command tessera answers Register of proto/kt_service.proto from a Tessera log on a POSIX file system. It is a peer of
// the benchmark register-throughput: the same messages, VRF hash and entry as the project's, by other people's log.
//
// An entry is on disk and in the tree when its call is answered; with -published a signed checkpoint covers it, too.
// Tessera keeps no index of identities, so a device that registers again gets another entry.
package main

import (
	"context"
	"crypto/rand"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"time"

	"github.com/gtank/ristretto255"
	"github.com/transparency-dev/tessera"
	"github.com/transparency-dev/tessera/storage/posix"
	"golang.org/x/mod/sumdb/note"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:0", "address of gRPC")
	folder := flag.String("folder", "", "where the log is kept")
	vrfKey := flag.String("vrf-key", "", "secret scalar of the VRF, base64")
	published := flag.Bool("published", false, "answer when a signed checkpoint covers the entry")
	batchSize := flag.Uint("batch-size", 256, "entries that are integrated without waiting for more")
	batchAge := flag.Duration("batch-age", 5*time.Millisecond, "how long the first entry of a batch waits for more")
	flag.Parse()

	vrf, err := newVrf(*vrfKey)
	check(err)
	ctx := context.Background()
	driver, err := posix.New(ctx, posix.Config{Path: *folder})
	check(err)
	signingKey, _, err := note.GenerateKey(rand.Reader, "bench.example/tessera")
	check(err)
	signer, err := note.NewSigner(signingKey)
	check(err)
	options := tessera.NewAppendOptions().
		WithCheckpointSigner(signer).
		WithCheckpointInterval(checkpointInterval).
		WithBatching(*batchSize, *batchAge)
	appender, _, reader, err := tessera.NewAppender(ctx, driver, options)
	check(err)

	service := &service{vrf: vrf, add: appender.Add}
	if *published {
		service.awaiter = tessera.NewPublicationAwaiter(ctx, reader.ReadCheckpoint, checkpointPoll)
	}
	listener, err := net.Listen("tcp", *listen)
	check(err)
	server := grpc.NewServer(grpc.ForceServerCodec(codec{}))
	server.RegisterService(&description, service)
	check(server.Serve(listener))
}

const (
	// The shortest that Tessera takes for files.
	checkpointInterval = 100 * time.Millisecond
	checkpointPoll     = 5 * time.Millisecond
)

type service struct {
	vrf     *vrf
	add     tessera.AddFn
	awaiter *tessera.PublicationAwaiter
}

func (s *service) register(ctx context.Context, request *registerRequest) (*registerResponse, error) {
	if key, err := base64.StdEncoding.Strict().DecodeString(request.publicKey); err != nil || len(key) == 0 {
		return nil, status.Error(codes.InvalidArgument, "publicKey")
	}
	hash := base64.StdEncoding.EncodeToString(s.vrf.hash(fmt.Sprintf("%d_%d", request.userID, request.deviceID)))
	future := s.add(ctx, tessera.NewEntry([]byte(hash+"\n"+request.publicKey+"\n")))
	var index tessera.Index
	var err error
	if s.awaiter != nil {
		index, _, err = s.awaiter.Await(ctx, future)
	} else {
		index, err = future()
	}
	if err != nil {
		return nil, status.Error(codes.Unavailable, err.Error())
	}
	return &registerResponse{index: index.Index, vrfHash: hash}, nil
}

var description = grpc.ServiceDesc{
	ServiceName: "kt.v1.KTService",
	HandlerType: (*any)(nil),
	Methods: []grpc.MethodDesc{{
		MethodName: "Register",
		Handler: func(server any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			request := new(registerRequest)
			if err := decode(request); err != nil {
				return nil, err
			}
			return server.(*service).register(ctx, request)
		},
	}},
}

type registerRequest struct {
	userID, deviceID uint64
	publicKey        string
}

type registerResponse struct {
	index   uint64
	vrfHash string
}

// codec reads and writes the two messages of Register, field by field, so that no generated code is kept.
type codec struct{}

func (codec) Name() string { return "proto" }

func (codec) Marshal(message any) ([]byte, error) {
	response := message.(*registerResponse)
	data := protowire.AppendTag(nil, 1, protowire.VarintType)
	data = protowire.AppendVarint(data, response.index)
	data = protowire.AppendTag(data, 2, protowire.BytesType)
	return protowire.AppendString(data, response.vrfHash), nil
}

func (codec) Unmarshal(data []byte, message any) error {
	request := message.(*registerRequest)
	for len(data) > 0 {
		number, kind, length := protowire.ConsumeTag(data)
		if length < 0 {
			return protowire.ParseError(length)
		}
		data = data[length:]
		switch {
		case number == 1 && kind == protowire.VarintType:
			request.userID, length = protowire.ConsumeVarint(data)
		case number == 2 && kind == protowire.VarintType:
			request.deviceID, length = protowire.ConsumeVarint(data)
		case number == 3 && kind == protowire.BytesType:
			request.publicKey, length = protowire.ConsumeString(data)
		default:
			length = protowire.ConsumeFieldValue(number, kind, data)
		}
		if length < 0 {
			return protowire.ParseError(length)
		}
		data = data[length:]
	}
	return nil
}

// vrf makes hashes of c2sp.org/vrf-r255 without their proofs, which Register does not answer.
type vrf struct {
	secret    *ristretto255.Scalar
	publicKey []byte
}

func newVrf(key string) (*vrf, error) {
	secretBytes, err := base64.StdEncoding.DecodeString(key)
	if err != nil {
		return nil, err
	}
	secret, err := ristretto255.NewScalar().SetCanonicalBytes(secretBytes)
	if err != nil {
		return nil, errors.New("-vrf-key is no scalar")
	}
	return &vrf{secret, ristretto255.NewIdentityElement().ScalarBaseMult(secret).Bytes()}, nil
}

func (v *vrf) hash(input string) []byte {
	element, err := ristretto255.NewIdentityElement().SetUniformBytes(suiteHash(0x82, v.publicKey, []byte(input)))
	check(err)
	gamma := ristretto255.NewIdentityElement().ScalarMult(v.secret, element)
	return suiteHash(0x03, gamma.Bytes(), []byte{0x00})
}

func suiteHash(domain byte, parts ...[]byte) []byte {
	hash := sha512.New()
	hash.Write([]byte("\xFFc2sp.org/vrf-r255"))
	hash.Write([]byte{domain})
	for _, part := range parts {
		hash.Write(part)
	}
	return hash.Sum(nil)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
