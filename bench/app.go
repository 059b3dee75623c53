package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"

	"github.com/semelstream/semel/stream"
)

// clientOptions are the same for all that is compared: what is sent is not
// compressed, and waits as long for its batch.
func clientOptions(s spec) []kgo.Opt {
	return []kgo.Opt{
		kgo.WithCompressor(uncompressed{}),
		kgo.ProducerLinger(s.Linger),
		kgo.MaxBufferedRecords(1 << 20),
		kgo.DisableClientMetrics(),
	}
}

// uncompressed is a compressor that leaves batches alone. The options of an app
// are shared by clients that it makes at the same time, and those of
// kgo.ProducerBatchCompression are a slice that each of them writes to.
type uncompressed struct{}

// Compress implements kgo.Compressor; nil is "as it was".
func (uncompressed) Compress(*bytes.Buffer, []byte, ...kgo.CompressFlag) ([]byte, kgo.CompressionCodecType) {
	return nil, kgo.CodecNone
}

// runApp runs a topology until all records are committed or ctx ends.
func runApp(ctx context.Context, s spec, out *events, questions io.Reader) error {
	define, ok := topologies[s.Topology]
	if !ok {
		return fmt.Errorf("there is no topology %q", s.Topology)
	}
	top, err := stream.Build(define(s.In, s.Out))
	if err != nil {
		return err
	}
	log, err := zap.NewDevelopmentConfig().Build(zap.IncreaseLevel(zap.WarnLevel))
	if err != nil {
		return err
	}
	m := newMeter(s, out)
	if s.Workers == 1 {
		m.steps = takeSteps()
	}
	exit := stream.Leave // a group without members can be deleted
	if s.Stay {
		exit = stream.Stay
	}
	app, err := stream.New(top, stream.Config{
		AppID: s.App, Brokers: s.Brokers, StateDir: s.Dir, Workers: s.Workers,
		CommitInterval: s.Commit, AtLeastOnce: s.AtLeastOnce,
		// The id stays when the state directory goes: a lost disk, not a new member.
		InstanceID: "bench", OnExit: exit,
		Client: clientOptions(s), Logger: log, Hooks: []stream.Hook{m},
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-m.finished:
			cancel()
		case <-ctx.Done():
		}
	}()
	go answer(app, questions, out)
	err = app.Run(ctx)
	m.end()
	return err
}

// answer counts the rows of the store for each line of questions.
func answer(app *stream.App, questions io.Reader, out *events) {
	for s := bufio.NewScanner(questions); s.Scan(); {
		n, err := countRows(app)
		if err != nil {
			out.warn("counting rows: %v", err)
			continue
		}
		out.send(event{Kind: eventRows, Text: fmt.Sprint(n)})
	}
}

func countRows(app *stream.App) (n int64, err error) {
	v, err := app.View[string, string](store)
	if err != nil {
		return 0, err
	}
	for _, err := range v.All() {
		if err != nil {
			return 0, err
		}
		n++
	}
	return n, nil
}
