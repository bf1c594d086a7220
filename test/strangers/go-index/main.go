// Checks the index of a log with programs that other people wrote: torchwood verifies present and absent keys
// of the map, and makes the map again from the log's entries; transparency-dev/formats and merkle read checkpoints and
// inclusion proofs; Tessera's client and fsck follow the output log and rebuild all of it.
//
// Package mpt is torchwood's. In v0.10.0 each of its files has `go:build ignore`, so the test copies them to ./mpt without it.
//
// The task is a JSON object on standard input, the findings are one on standard output. Whatever does not hold ends
// the program with exit code 1 and one sentence on standard error.
package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"

	"callsign.example/index-stranger/mpt"
	"filippo.io/torchwood"
	"github.com/transparency-dev/formats/log"
	"github.com/transparency-dev/merkle/compact"
	"github.com/transparency-dev/merkle/proof"
	"github.com/transparency-dev/merkle/rfc6962"
	"github.com/transparency-dev/tessera/client"
	"github.com/transparency-dev/tessera/fsck"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

type task struct {
	URL string `json:"url"`
	// Keys of the log and of its index.
	VKey      string `json:"vkey"`
	IndexVKey string `json:"indexVkey"`
	// An earlier checkpoint of the output log, to follow it from.
	Checkpoint string `json:"checkpoint"`
	// VRF hashes in base64.
	Hashes []string `json:"hashes"`
	// Claims to give a verdict on; hexadecimal, without a value where the key is said to be absent.
	Claims []claim `json:"claims"`
}

type claim struct {
	Root  string  `json:"root"`
	Key   string  `json:"key"`
	Value *string `json:"value"`
	Proof string  `json:"proof"`
}

type findings struct {
	Verdicts []bool `json:"verdicts"`
	// For each hash the indexes under it.
	Indexes  [][]uint64 `json:"indexes"`
	Followed uint64     `json:"followed"`
	// Leaves of the output log, each with the root of the map over its entries, and entries that the last has.
	Leaves  int    `json:"leaves"`
	Entries uint64 `json:"entries"`
}

// As the prototype of transparency.dev answers, whose mpt had its own form of proofs.
type lookupResponse struct {
	OutputLogCP    []byte     `json:"output_log_cp"`
	OutputLogLeaf  []byte     `json:"output_log_leaf"`
	OutputLogProof [][32]byte `json:"output_log_proof"`
	IndexValue     []uint64   `json:"index_value"`
	IndexProof     []byte     `json:"index_proof"`
}

type outputLogLeaf struct {
	InputLogCP []byte   `json:"input_log_cp"`
	IndexRoot  [32]byte `json:"index_root"`
}

func main() {
	found, err := run(context.Background(), os.Stdin)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	json.NewEncoder(os.Stdout).Encode(found)
}

func run(ctx context.Context, input io.Reader) (*findings, error) {
	var job task
	if err := json.NewDecoder(input).Decode(&job); err != nil {
		return nil, err
	}
	found := &findings{}
	for _, c := range job.Claims {
		ok, err := verdict(c)
		if err != nil {
			return nil, err
		}
		found.Verdicts = append(found.Verdicts, ok)
	}
	if job.URL == "" {
		return found, nil
	}
	verifier, err := note.NewVerifier(job.VKey)
	if err != nil {
		return nil, err
	}
	indexVerifier, err := note.NewVerifier(job.IndexVKey)
	if err != nil {
		return nil, err
	}
	checker := &checker{job: job, verifier: verifier, indexVerifier: indexVerifier, found: found}
	for _, hash := range job.Hashes {
		if err := checker.lookUp(ctx, hash); err != nil {
			return nil, err
		}
	}
	if err := checker.follow(ctx); err != nil {
		return nil, err
	}
	return found, checker.rebuild(ctx)
}

func verdict(c claim) (bool, error) {
	octets := func(text string) []byte {
		decoded, err := hex.DecodeString(text)
		if err != nil {
			panic(err)
		}
		return decoded
	}
	root := octets(c.Root)
	if len(root) != 32 {
		return false, nil
	}
	var value []byte
	if c.Value != nil {
		value = octets(*c.Value)
	}
	snapshot := mpt.Snapshot{Hash: mpt.Hash(root)}
	return mpt.VerifyLookup(snapshot, octets(c.Key), value, c.Value != nil, octets(c.Proof)) == nil, nil
}

type checker struct {
	job           task
	verifier      note.Verifier
	indexVerifier note.Verifier
	found         *findings
	// The leaves that lookups had, by their index.
	shown map[uint64][]byte
}

func (c *checker) lookUp(ctx context.Context, hash string) error {
	key := sha256.Sum256([]byte(hash))
	body, err := fetch(ctx, c.job.URL+"/index/lookup/"+hex.EncodeToString(key[:]))
	if err != nil {
		return err
	}
	var answer lookupResponse
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&answer); err != nil {
		return fmt.Errorf("lookup: %w", err)
	}
	checkpoint, _, _, err := log.ParseCheckpoint(answer.OutputLogCP, c.indexVerifier.Name(), c.indexVerifier)
	if err != nil {
		return fmt.Errorf("output checkpoint: %w", err)
	}
	if checkpoint.Size == 0 {
		return errors.New("output checkpoint: it has no leaf")
	}
	var path [][]byte
	for _, each := range answer.OutputLogProof {
		path = append(path, each[:])
	}
	leafHash := rfc6962.DefaultHasher.HashLeaf(answer.OutputLogLeaf)
	if err := proof.VerifyInclusion(rfc6962.DefaultHasher, checkpoint.Size-1, checkpoint.Size, leafHash, path, checkpoint.Hash); err != nil {
		return fmt.Errorf("output proof: %w", err)
	}
	leaf, input, err := c.parseLeaf(answer.OutputLogLeaf)
	if err != nil {
		return err
	}
	if !slices.IsSorted(answer.IndexValue) || len(slices.Compact(slices.Clone(answer.IndexValue))) != len(answer.IndexValue) {
		return errors.New("index value: it is out of order")
	}
	for _, index := range answer.IndexValue {
		if index >= input.Size {
			return errors.New("index value: an index is not in the log that the map is of")
		}
	}
	isThere := len(answer.IndexValue) > 0
	var value []byte
	if isThere {
		value = valueOf(answer.IndexValue)
	}
	if err := mpt.VerifyLookup(mpt.Snapshot{Hash: leaf.IndexRoot}, key[:], value, isThere, answer.IndexProof); err != nil {
		return fmt.Errorf("index proof: %w", err)
	}
	if c.shown == nil {
		c.shown = map[uint64][]byte{}
	}
	c.shown[checkpoint.Size-1] = answer.OutputLogLeaf
	c.found.Indexes = append(c.found.Indexes, append([]uint64{}, answer.IndexValue...))
	return nil
}

func (c *checker) parseLeaf(bytes []byte) (*outputLogLeaf, *log.Checkpoint, error) {
	var leaf outputLogLeaf
	if err := json.Unmarshal(bytes, &leaf); err != nil {
		return nil, nil, fmt.Errorf("leaf: %w", err)
	}
	input, _, _, err := log.ParseCheckpoint(leaf.InputLogCP, c.verifier.Name(), c.verifier)
	if err != nil {
		return nil, nil, fmt.Errorf("input checkpoint: %w", err)
	}
	return &leaf, input, nil
}

// Follows the output log from an earlier checkpoint as a client of Tessera does, and rebuilds it.
func (c *checker) follow(ctx context.Context) error {
	root, err := url.Parse(c.job.URL + "/index/")
	if err != nil {
		return err
	}
	fetcher, err := client.NewHTTPFetcher(root, http.DefaultClient)
	if err != nil {
		return err
	}
	consensus := client.UnilateralConsensus(fetcher.ReadCheckpoint)
	tracker, err := client.NewLogStateTracker(ctx, fetcher.ReadTile, []byte(c.job.Checkpoint), c.indexVerifier, c.indexVerifier.Name(), consensus)
	if err != nil {
		return fmt.Errorf("tracker: %w", err)
	}
	before := tracker.Latest().Size
	if _, _, _, err := tracker.Update(ctx); err != nil {
		return fmt.Errorf("tracker: %w", err)
	}
	c.found.Followed = tracker.Latest().Size - before
	check := fsck.New(c.indexVerifier.Name(), c.indexVerifier, fetcher, hashBundle, fsck.Opts{N: 1})
	if err := check.Check(ctx); err != nil {
		return fmt.Errorf("fsck: %w", err)
	}
	return nil
}

// Makes the map from the log's entries, and compares each leaf of the output log with it.
func (c *checker) rebuild(ctx context.Context) error {
	leaves, err := c.entries(ctx, "/index", c.indexVerifier)
	if err != nil {
		return err
	}
	for index, leaf := range c.shown {
		if index >= uint64(len(leaves)) || !bytes.Equal(leaves[index], leaf) {
			return fmt.Errorf("leaf %d: the output log has another than a lookup showed", index)
		}
	}
	// After the leaves, so that it has all that they are of.
	entries, err := c.entries(ctx, "", c.verifier)
	if err != nil {
		return err
	}
	tree := mpt.NewMemTree()
	indexes := map[string][]uint64{}
	made := (&compact.RangeFactory{Hash: rfc6962.DefaultHasher.HashChildren}).NewEmptyRange(0)
	for at, bytesOfLeaf := range leaves {
		leaf, input, err := c.parseLeaf(bytesOfLeaf)
		if err != nil {
			return fmt.Errorf("leaf %d: %w", at, err)
		}
		if input.Size < made.End() || input.Size > uint64(len(entries)) {
			return fmt.Errorf("leaf %d: it is of %d entries", at, input.Size)
		}
		for made.End() < input.Size {
			entry := entries[made.End()]
			hash, _, _ := bytes.Cut(entry, []byte("\n"))
			key := sha256.Sum256(hash)
			indexes[string(key[:])] = append(indexes[string(key[:])], made.End())
			if err := tree.Set(key[:], valueOf(indexes[string(key[:])])); err != nil {
				return err
			}
			if err := made.Append(rfc6962.DefaultHasher.HashLeaf(entry), nil); err != nil {
				return err
			}
		}
		root, err := made.GetRootHash(nil)
		if err != nil {
			return err
		}
		if input.Size == 0 {
			root = rfc6962.DefaultHasher.EmptyRoot()
		}
		if !bytes.Equal(root, input.Hash) {
			return fmt.Errorf("leaf %d: its input checkpoint is of another log", at)
		}
		snapshot, err := tree.Snap(-1)
		if err != nil {
			return err
		}
		if snapshot.Hash != mpt.Hash(leaf.IndexRoot) {
			return fmt.Errorf("leaf %d: the map has the root %s", at, snapshot.Hash)
		}
		c.found.Leaves++
		c.found.Entries = input.Size
	}
	return nil
}

// All entries of a log, each verified by torchwood's client against the log's checkpoint.
func (c *checker) entries(ctx context.Context, path string, verifier note.Verifier) ([][]byte, error) {
	signed, err := fetch(ctx, c.job.URL+path+"/checkpoint")
	if err != nil {
		return nil, err
	}
	policy := torchwood.ThresholdPolicy(2, torchwood.SingleVerifierPolicy(verifier), torchwood.OriginPolicy(verifier.Name()))
	checkpoint, _, err := torchwood.VerifyCheckpoint(signed, policy)
	if err != nil {
		return nil, fmt.Errorf("checkpoint of %s: %w", verifier.Name(), err)
	}
	fetcher, err := torchwood.NewTileFetcher(c.job.URL + path)
	if err != nil {
		return nil, err
	}
	reader, err := torchwood.NewClient(fetcher)
	if err != nil {
		return nil, err
	}
	var entries [][]byte
	for _, entry := range reader.AllEntries(ctx, checkpoint.Tree, 0) {
		entries = append(entries, bytes.Clone(entry))
	}
	if err := reader.Err(); err != nil {
		return nil, fmt.Errorf("entries of %s: %w", verifier.Name(), err)
	}
	if int64(len(entries)) != checkpoint.N {
		return nil, fmt.Errorf("entries of %s: %d of %d", verifier.Name(), len(entries), checkpoint.N)
	}
	return entries, nil
}

func valueOf(indexes []uint64) []byte {
	var octets []byte
	for _, index := range indexes {
		octets = binary.BigEndian.AppendUint64(octets, index)
	}
	value := sha256.Sum256(octets)
	return value[:]
}

func fetch(ctx context.Context, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s answers %d: %s", url, response.StatusCode, body)
	}
	return body, err
}

// The leaf hashes of a bundle: each entry has its length in two octets before it.
func hashBundle(bundle []byte) ([][]byte, error) {
	var hashes [][]byte
	for len(bundle) > 0 {
		if len(bundle) < 2 {
			return nil, errors.New("a bundle ends within a length")
		}
		length := int(bundle[0])<<8 | int(bundle[1])
		if len(bundle) < 2+length {
			return nil, errors.New("a bundle ends within an entry")
		}
		hash := tlog.RecordHash(bundle[2 : 2+length])
		hashes = append(hashes, hash[:])
		bundle = bundle[2+length:]
	}
	return hashes, nil
}
