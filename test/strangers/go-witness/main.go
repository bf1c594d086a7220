// Keeps the key of a litewitness, as an ssh-agent does, and puts a log on its list. The task is a JSON object on standard
// input; the fingerprint of the key and the witness's verifier key are one on standard output. Ends when standard input does.
package main

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"io"
	"log"
	"net"
	"os"

	"filippo.io/torchwood"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
	"golang.org/x/mod/sumdb/tlog"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

type task struct {
	// The name of the witness.
	Name string `json:"name"`
	// Where the key is asked for.
	Socket string `json:"socket"`
	// The witness's database, which it has made.
	Database string `json:"database"`
	Origin   string `json:"origin"`
	VKey     string `json:"vkey"`
}

func main() {
	log.SetFlags(0)
	input := json.NewDecoder(os.Stdin)
	var task task
	check(input.Decode(&task))
	_, key, err := ed25519.GenerateKey(rand.Reader)
	check(err)
	keyring := agent.NewKeyring()
	check(keyring.Add(agent.AddedKey{PrivateKey: key}))
	listener, err := net.Listen("unix", task.Socket)
	check(err)
	go serve(listener, keyring)
	addLog(task)
	signer, err := torchwood.NewCosignatureSigner(task.Name, key)
	check(err)
	public, err := ssh.NewPublicKey(key.Public())
	check(err)
	check(json.NewEncoder(os.Stdout).Encode(map[string]string{
		"fingerprint": ssh.FingerprintSHA256(public),
		"vkey":        signer.Verifier().String(),
	}))
	_, err = io.Copy(io.Discard, os.Stdin)
	check(err)
}

func serve(listener net.Listener, keyring agent.Agent) {
	for {
		connection, err := listener.Accept()
		check(err)
		go agent.ServeAgent(keyring, connection)
	}
}

// Does what `witnessctl add-log` and `add-key` do, which need modules that this test does without.
func addLog(task task) {
	database, err := sqlite.OpenConn(task.Database)
	check(err)
	defer database.Close()
	check(sqlitex.ExecuteScript(database, schema, nil))
	root, err := tlog.TreeHash(0, nil)
	check(err)
	check(sqlitex.Execute(database, "INSERT INTO log (origin, tree_size, tree_hash) VALUES (?, 0, ?)",
		&sqlitex.ExecOptions{Args: []any{task.Origin, root.String()}}))
	check(sqlitex.Execute(database, "INSERT INTO key (origin, key) VALUES (?, ?)",
		&sqlitex.ExecOptions{Args: []any{task.Origin, task.VKey}}))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

const schema = `
	CREATE TABLE IF NOT EXISTS log (origin TEXT PRIMARY KEY, tree_size INTEGER NOT NULL, tree_hash TEXT NOT NULL);
	CREATE TABLE IF NOT EXISTS key (origin TEXT NOT NULL, key TEXT NOT NULL, FOREIGN KEY(origin) REFERENCES log(origin));
`
