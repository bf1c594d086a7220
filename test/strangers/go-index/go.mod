module callsign.example/index-stranger

go 1.27

require (
	filippo.io/torchwood v0.10.0
	github.com/transparency-dev/formats v0.1.1
	github.com/transparency-dev/tessera v1.0.4
	golang.org/x/mod v0.36.0
)
