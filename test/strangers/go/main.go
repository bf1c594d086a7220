// Checks a log with the packages that Go checks its module checksum database with: golang.org/x/mod/sumdb/note opens
// checkpoints, golang.org/x/mod/sumdb/tlog checks inclusion, consistency and every tile it reads.
//
// The task is a JSON object on standard input, the findings are one on standard output. Whatever does not hold ends
// the program with exit code 1 and one sentence on standard error.
package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

type task struct {
	VKey string `json:"vkey"`
	// Signed notes to open, in any order of size.
	Checkpoints []string `json:"checkpoints"`
	// Where the log's files are; without it only checkpoints and lookups are checked.
	URL string `json:"url"`
	// Entries with the proof texts that the server gave for them.
	Lookups []lookup `json:"lookups"`
}

type lookup struct {
	Entry string `json:"entry"`
	Proof string `json:"proof"`
}

type findings struct {
	Sizes       []int64 `json:"sizes"`
	Included    int     `json:"included"`
	SameProofs  int     `json:"sameProofs"`
	Consistent  int     `json:"consistent"`
	Entries     int64   `json:"entries"`
	TilesLoaded int     `json:"tilesLoaded"`
}

func main() {
	found, err := run(os.Stdin)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	json.NewEncoder(os.Stdout).Encode(found)
}

func run(input io.Reader) (*findings, error) {
	var job task
	if err := json.NewDecoder(input).Decode(&job); err != nil {
		return nil, err
	}
	verifier, err := note.NewVerifier(job.VKey)
	if err != nil {
		return nil, err
	}
	found := &findings{}
	trees := []tlog.Tree{}
	for _, text := range job.Checkpoints {
		tree, err := openCheckpoint([]byte(text), verifier)
		if err != nil {
			return nil, err
		}
		trees = append(trees, tree)
		found.Sizes = append(found.Sizes, tree.N)
	}
	for _, l := range job.Lookups {
		if err := checkLookup(l, verifier); err != nil {
			return nil, err
		}
		found.Included++
	}
	if job.URL != "" {
		err = checkFiles(job, trees, verifier, found)
	}
	return found, err
}

// openCheckpoint is note.Open and the three lines of c2sp.org/tlog-checkpoint; tlog.ParseTree reads these too, but
// only for the checksum database, whose name it expects in the first line.
func openCheckpoint(text []byte, verifier note.Verifier) (tlog.Tree, error) {
	opened, err := note.Open(text, note.VerifierList(verifier))
	if err != nil {
		return tlog.Tree{}, fmt.Errorf("open checkpoint: %w", err)
	}
	lines := strings.Split(opened.Text, "\n")
	if len(lines) != 4 || lines[0] != verifier.Name() || lines[3] != "" {
		return tlog.Tree{}, fmt.Errorf("checkpoint of unknown form: %q", opened.Text)
	}
	size, err := strconv.ParseInt(lines[1], 10, 64)
	if err != nil || strconv.FormatInt(size, 10) != lines[1] {
		return tlog.Tree{}, fmt.Errorf("checkpoint size %q", lines[1])
	}
	hash, err := tlog.ParseHash(lines[2])
	if err != nil {
		return tlog.Tree{}, fmt.Errorf("checkpoint root: %w", err)
	}
	return tlog.Tree{N: size, Hash: hash}, nil
}

type inclusion struct {
	index      int64
	proof      tlog.RecordProof
	checkpoint []byte
}

// parseProof takes a text of c2sp.org/tlog-proof apart.
func parseProof(text string) (*inclusion, error) {
	head, checkpoint, ok := strings.Cut(text, "\n\n")
	lines := strings.Split(head, "\n")
	if !ok || len(lines) < 3 || lines[0] != "c2sp.org/tlog-proof@v1" || !strings.HasPrefix(lines[1], "extra ") {
		return nil, errors.New("proof of unknown form")
	}
	index, err := strconv.ParseInt(strings.TrimPrefix(lines[2], "index "), 10, 64)
	if err != nil {
		return nil, fmt.Errorf("proof index: %w", err)
	}
	proof := tlog.RecordProof{}
	for _, line := range lines[3:] {
		hash, err := tlog.ParseHash(line)
		if err != nil {
			return nil, fmt.Errorf("proof hash: %w", err)
		}
		proof = append(proof, hash)
	}
	return &inclusion{index, proof, []byte(checkpoint)}, nil
}

func checkLookup(l lookup, verifier note.Verifier) error {
	given, err := parseProof(l.Proof)
	if err != nil {
		return err
	}
	tree, err := openCheckpoint(given.checkpoint, verifier)
	if err != nil {
		return err
	}
	err = tlog.CheckRecord(given.proof, tree.N, tree.Hash, given.index, tlog.RecordHash([]byte(l.Entry)))
	if err != nil {
		return fmt.Errorf("check record %d: %w", given.index, err)
	}
	return nil
}

// checkFiles reads the log's files as an auditor would: every hash comes through tlog.TileHashReader, which
// authenticates the tiles it loads against the root of the current checkpoint. (Up to version 0.7 at least it leaves
// some full tiles out of that, so the entries must also give the root by themselves.)
func checkFiles(job task, older []tlog.Tree, verifier note.Verifier, found *findings) error {
	tiles := &tileReader{url: job.URL}
	text, err := tiles.get("checkpoint")
	if err != nil {
		return err
	}
	tree, err := openCheckpoint(text, verifier)
	if err != nil {
		return err
	}
	reader := tlog.TileHashReader(tree, tiles)
	for _, old := range older {
		if err := checkConsistency(tree, old, reader); err != nil {
			return err
		}
		found.Consistent++
	}
	for _, l := range job.Lookups {
		if err := checkSameProof(l, tree, reader); err != nil {
			return err
		}
		found.SameProofs++
	}
	if err := checkEntries(tiles, tree, reader); err != nil {
		return err
	}
	found.Entries = tree.N
	found.TilesLoaded = tiles.loaded
	return nil
}

func checkConsistency(tree, old tlog.Tree, reader tlog.HashReader) error {
	if old.N == 0 {
		// tlog has no proof for it: every tree extends the empty one.
		return nil
	}
	proof, err := tlog.ProveTree(tree.N, old.N, reader)
	if err != nil {
		return fmt.Errorf("prove tree %d in %d: %w", old.N, tree.N, err)
	}
	if err := tlog.CheckTree(proof, tree.N, tree.Hash, old.N, old.Hash); err != nil {
		return fmt.Errorf("check tree %d in %d: %w", old.N, tree.N, err)
	}
	return nil
}

// checkSameProof makes the inclusion proof of a lookup again from the tiles.
func checkSameProof(l lookup, tree tlog.Tree, reader tlog.HashReader) error {
	given, err := parseProof(l.Proof)
	if err != nil {
		return err
	}
	proof, err := tlog.ProveRecord(tree.N, given.index, reader)
	if err != nil {
		return fmt.Errorf("prove record %d: %w", given.index, err)
	}
	if len(proof) != len(given.proof) {
		return fmt.Errorf("proof of record %d has %d hashes, not %d", given.index, len(given.proof), len(proof))
	}
	for i := range proof {
		if proof[i] != given.proof[i] {
			return fmt.Errorf("proof of record %d differs at hash %d", given.index, i)
		}
	}
	return nil
}

// checkEntries compares each entry with its leaf hash in the tiles, and builds the tree again from the entries alone.
func checkEntries(tiles *tileReader, tree tlog.Tree, reader tlog.HashReader) error {
	rebuilt := storedHashes{}
	for first := int64(0); first < tree.N; first += width {
		entries, err := tiles.bundle(first/width, tree.N-first)
		if err != nil {
			return err
		}
		indexes := make([]int64, len(entries))
		for i := range entries {
			indexes[i] = tlog.StoredHashIndex(0, first+int64(i))
		}
		hashes, err := reader.ReadHashes(indexes)
		if err != nil {
			return fmt.Errorf("read hashes from %d: %w", first, err)
		}
		for i, entry := range entries {
			if tlog.RecordHash(entry) != hashes[i] {
				return fmt.Errorf("entry %d is not what its tile says", first+int64(i))
			}
			grown, err := tlog.StoredHashes(first+int64(i), entry, rebuilt)
			if err != nil {
				return err
			}
			rebuilt = append(rebuilt, grown...)
		}
	}
	for name, source := range map[string]tlog.HashReader{"tiles": reader, "entries": rebuilt} {
		if root, err := tlog.TreeHash(tree.N, source); err != nil || root != tree.Hash {
			return fmt.Errorf("the root of the %s is %v, not %v (%v)", name, root, tree.Hash, err)
		}
	}
	return nil
}

// storedHashes is a tlog.HashReader in memory.
type storedHashes []tlog.Hash

func (s storedHashes) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	hashes := make([]tlog.Hash, len(indexes))
	for i, index := range indexes {
		hashes[i] = s[index]
	}
	return hashes, nil
}

const (
	height = 8
	width  = 1 << height
)

// tileReader is the tlog.TileReader of a log whose tiles are 256 wide and whose paths leave the height out.
type tileReader struct {
	url    string
	loaded int
}

func (r *tileReader) Height() int { return height }

func (r *tileReader) ReadTiles(tiles []tlog.Tile) ([][]byte, error) {
	all := make([][]byte, len(tiles))
	for i, tile := range tiles {
		data, err := r.get("tile/" + strings.TrimPrefix(tile.Path(), fmt.Sprintf("tile/%d/", height)))
		if err != nil {
			return nil, err
		}
		all[i] = data
	}
	return all, nil
}

func (r *tileReader) SaveTiles(tiles []tlog.Tile, data [][]byte) { r.loaded += len(tiles) }

// bundle fetches the n-th bundle of entries; in it are what remains of the log, or 256.
func (r *tileReader) bundle(n, remaining int64) ([][]byte, error) {
	wanted := width
	if remaining < width {
		wanted = int(remaining)
	}
	// tlog calls a tile of data one of level -1: tile/8/data/<N>.
	path := tlog.Tile{H: height, L: -1, N: n, W: wanted}.Path()
	data, err := r.get("tile/entries/" + strings.TrimPrefix(path, fmt.Sprintf("tile/%d/data/", height)))
	if err != nil {
		return nil, err
	}
	entries := [][]byte{}
	for len(data) >= 2 {
		end := 2 + int(binary.BigEndian.Uint16(data))
		if end > len(data) {
			break
		}
		entries = append(entries, data[2:end])
		data = data[end:]
	}
	if len(data) > 0 || len(entries) != wanted {
		return nil, fmt.Errorf("bundle %d has %d of %d entries", n, len(entries), wanted)
	}
	return entries, nil
}

func (r *tileReader) get(path string) ([]byte, error) {
	answer, err := http.Get(r.url + "/" + path)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	var body bytes.Buffer
	if _, err := body.ReadFrom(answer.Body); err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s", path, answer.Status)
	}
	return body.Bytes(), nil
}
