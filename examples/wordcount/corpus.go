package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
)

// A corpus is a text and the plain count of its words.
type corpus struct {
	name    string
	lines   int
	words   int
	skipped int // too long for a record
	count   map[string]int64
}

// load sends every line to the topic lines and counts its words on the way.
func load(ctx context.Context, cl *kgo.Client, in string, partitions int32) (*corpus, error) {
	c := &corpus{name: in, count: map[string]int64{}}
	var failed error
	send := func(line string) {
		c.lines++
		for _, w := range strings.Fields(line) {
			c.words++
			c.count[strings.ToLower(w)]++
		}
		r := &kgo.Record{Topic: Lines.Name, Partition: int32(c.lines) % partitions, Value: []byte(line)}
		cl.Produce(ctx, r, func(_ *kgo.Record, err error) {
			if err != nil && failed == nil {
				failed = err
			}
		})
	}
	if err := c.read(in, send); err != nil {
		return nil, err
	}
	if err := cl.Flush(ctx); err != nil {
		return nil, fmt.Errorf("loading: %w", err)
	}
	return c, failed
}

func (c *corpus) read(in string, send func(string)) error {
	switch in {
	case "-":
		c.name = "standard input"
		return c.eachLine(os.Stdin, send)
	case "":
		c.name = "the source of Go's standard library"
		return c.eachSource(send)
	default:
		f, err := os.Open(in)
		if err != nil {
			return err
		}
		defer f.Close() //nolint:errcheck // it was only read
		return c.eachLine(f, send)
	}
}

// longest is the longest line that is sent: longer ones would not fit a record.
const longest = 900 << 10

func (c *corpus) eachLine(r io.Reader, f func(string)) error {
	for b := bufio.NewReaderSize(r, 64<<10); ; {
		line, err := b.ReadString('\n')
		switch line = strings.TrimRight(line, "\r\n"); {
		case line == "":
		case len(line) > longest:
			c.skipped++
		default:
			f(line)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// eachSource reads every Go file of the standard library.
func (c *corpus) eachSource(f func(string)) error {
	out, err := exec.Command("go", "env", "GOROOT").Output() //nolint:noctx // it ends at once
	if err != nil {
		return fmt.Errorf("finding Go's source: %w; give a text with -in", err)
	}
	root := filepath.Join(strings.TrimSpace(string(out)), "src")
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" {
			return err
		}
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		defer file.Close() //nolint:errcheck // it was only read
		return c.eachLine(file, f)
	})
}
