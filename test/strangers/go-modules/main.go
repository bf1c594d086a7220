// Checks a log with programs that other people wrote for logs of this kind: torchwood verifies proofs and policies, its
// vrf-r255 the VRF proofs, transparency-dev/formats reads checkpoints and proofs, and Tessera's client and fsck follow the
// log and rebuild all of it.
//
// The task is a JSON object on standard input, the findings are one on standard output. Whatever does not hold ends
// the program with exit code 1 and one sentence on standard error.
package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"

	"filippo.io/mostly-harmless/vrf-r255"
	"filippo.io/torchwood"
	"github.com/transparency-dev/formats/log"
	"github.com/transparency-dev/formats/proof"
	"github.com/transparency-dev/tessera/client"
	"github.com/transparency-dev/tessera/fsck"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

type task struct {
	VKey string `json:"vkey"`
	// A policy in the form of c2sp.org/tlog-policy, of the log and its witnesses.
	Policy string `json:"policy"`
	// Base64.
	VRFPublicKey string `json:"vrfPublicKey"`
	// An earlier checkpoint, to follow the log from.
	Checkpoint string   `json:"checkpoint"`
	URL        string   `json:"url"`
	Lookups    []lookup `json:"lookups"`
}

type lookup struct {
	// `<userId>_<deviceId>`
	Name  string `json:"name"`
	Entry string `json:"entry"`
	Proof string `json:"proof"`
}

type findings struct {
	Proofs      int    `json:"proofs"`
	VRFProofs   int    `json:"vrfProofs"`
	SameProofs  int    `json:"sameProofs"`
	Followed    uint64 `json:"followed"`
	Checked     uint64 `json:"checked"`
	Cosignature int    `json:"cosignatures"`
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
	verifier, err := note.NewVerifier(job.VKey)
	if err != nil {
		return nil, err
	}
	policy, err := torchwood.ParsePolicy([]byte(job.Policy))
	if err != nil {
		return nil, fmt.Errorf("policy: %w", err)
	}
	found := &findings{}
	if err := checkLookups(job, policy, verifier, found); err != nil {
		return nil, err
	}
	if job.URL == "" {
		return found, nil
	}
	root, err := url.Parse(job.URL + "/")
	if err != nil {
		return nil, err
	}
	fetcher, err := client.NewHTTPFetcher(root, http.DefaultClient)
	if err != nil {
		return nil, err
	}
	if err := follow(ctx, job, policy, verifier, fetcher, found); err != nil {
		return nil, err
	}
	check := fsck.New(verifier.Name(), verifier, fetcher, hashBundle, fsck.Opts{N: 2})
	if err := check.Check(ctx); err != nil {
		return nil, fmt.Errorf("fsck: %w", err)
	}
	return found, nil
}

func checkLookups(job task, policy torchwood.Policy, verifier note.Verifier, found *findings) error {
	key, err := base64.StdEncoding.DecodeString(job.VRFPublicKey)
	if err != nil {
		return err
	}
	vrfKey, err := vrf.NewPublicKey(key)
	if err != nil {
		return err
	}
	for _, l := range job.Lookups {
		if err := torchwood.VerifyProof(policy, tlog.RecordHash([]byte(l.Entry)), []byte(l.Proof)); err != nil {
			return fmt.Errorf("%s: %w", l.Name, err)
		}
		found.Proofs++
		var read proof.TLogProof
		if err := read.Unmarshal([]byte(l.Proof)); err != nil {
			return err
		}
		if !bytes.Equal(read.Marshal(), []byte(l.Proof)) {
			return fmt.Errorf("%s: the proof is written in another way", l.Name)
		}
		if _, _, _, err := log.ParseCheckpoint(read.Checkpoint, verifier.Name(), verifier); err != nil {
			return err
		}
		found.SameProofs++
		vrfProof, err := vrf.NewProof(read.ExtraData)
		if err != nil {
			return err
		}
		hash, err := vrfKey.Verify(vrfProof, []byte(l.Name))
		if err != nil {
			return fmt.Errorf("%s: VRF proof: %w", l.Name, err)
		}
		stated, _, _ := strings.Cut(l.Entry, "\n")
		if base64.StdEncoding.EncodeToString(hash) != stated {
			return fmt.Errorf("%s: the entry has another VRF hash", l.Name)
		}
		found.VRFProofs++
	}
	return nil
}

// Follows the log from an earlier checkpoint as a client of Tessera does.
func follow(ctx context.Context, job task, policy torchwood.Policy, verifier note.Verifier, fetcher *client.HTTPFetcher, found *findings) error {
	consensus := client.UnilateralConsensus(fetcher.ReadCheckpoint)
	tracker, err := client.NewLogStateTracker(ctx, fetcher.ReadTile, []byte(job.Checkpoint), verifier, verifier.Name(), consensus)
	if err != nil {
		return fmt.Errorf("tracker: %w", err)
	}
	before := tracker.Latest().Size
	_, _, newest, err := tracker.Update(ctx)
	if err != nil {
		return fmt.Errorf("tracker: %w", err)
	}
	found.Followed = tracker.Latest().Size - before
	found.Checked = tracker.Latest().Size
	_, opened, err := torchwood.VerifyCheckpoint(newest, policy)
	if err != nil {
		return fmt.Errorf("policy: %w", err)
	}
	found.Cosignature = len(opened.Sigs) - 1
	return nil
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
