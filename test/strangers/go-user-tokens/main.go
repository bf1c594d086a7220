// Reads tokens, one a line, and prints for each what the verifier of docs/build/backend.md says: its claims in JSON, or `refused`.
// The test puts the verifier beside it.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
)

func main() {
	verify, err := newVerifier()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		claims, err := verify(lines.Text())
		if err != nil {
			fmt.Println("refused")
			continue
		}
		text, _ := json.Marshal(claims)
		fmt.Println(string(text))
	}
}
