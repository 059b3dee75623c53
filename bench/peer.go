package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	_ "embed"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// peerSource is the program that runs a topology in Kafka Streams; java compiles
// it when it starts.
//
//go:embed kafkastreams/Peer.java
var peerSource []byte

// runPeer runs a topology as an application of Kafka Streams and measures it from
// outside: what its group has committed, the CPU of its process. Like a meter it
// begins at a quarter of the records, by when the JVM has compiled what it needs.
func runPeer(ctx context.Context, s spec, out *events) error {
	cl, err := kgo.NewClient(kgo.SeedBrokers(s.Brokers...), kgo.DisableClientMetrics())
	if err != nil {
		return err
	}
	defer cl.Close()
	cmd, err := peerCommand(ctx, s)
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting Kafka Streams: %w", err)
	}
	defer func() {
		_ = cmd.Process.Kill() // nothing is asked of it any more
		_ = cmd.Wait()
	}()
	p := &peer{s: s, admin: kadm.NewClient(cl), pid: cmd.Process.Pid}
	if _, err := p.await(ctx, 1); err != nil {
		return err
	}
	out.send(event{Kind: eventState, Text: "running"})
	mark, err := p.await(ctx, s.Records/4)
	if err != nil {
		return err
	}
	end, err := p.await(ctx, s.Records)
	if err != nil {
		return err
	}
	r := &result{
		Records: end.done - mark.done, Seconds: end.at.Sub(mark.at).Seconds(), CPU: end.cpu - mark.cpu,
		PeakRSS: residentPeak(p.proc("status")), Unsteady: end.done != s.Records,
	}
	busy, idle := end.machine.since(mark.machine)
	r.Others, r.Idle = max(busy-r.CPU, 0), idle
	out.send(event{Kind: eventResult, Result: r})
	return nil
}

func peerCommand(ctx context.Context, s spec) (*exec.Cmd, error) {
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return nil, err
	}
	source := filepath.Join(s.Dir, "Peer.java")
	if err := os.WriteFile(source, peerSource, 0o600); err != nil {
		return nil, err
	}
	ms := func(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
	cmd := exec.CommandContext(ctx, "java", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp", filepath.Join(s.KafkaStreams, "*"), source,
		s.Topology, strings.Join(s.Brokers, ","), s.App, s.In, s.Out, filepath.Join(s.Dir, "state"), ms(s.Commit),
		ms(window), ms(hop), ms(gap), ms(near))
	cmd.Stderr = os.Stderr
	return cmd, nil
}

// A peer is an application of Kafka Streams as its observer sees it.
type peer struct {
	s     spec
	admin *kadm.Client
	pid   int
}

// await waits until so many records are committed.
func (p *peer) await(ctx context.Context, records int64) (at snapshot, err error) {
	err = waitUntil(ctx, 10*time.Millisecond, fmt.Sprintf("%d records of Kafka Streams", records), func() (bool, error) {
		at, err = p.look(ctx)
		return at.done >= records, err
	})
	return at, err
}

func (p *peer) look(ctx context.Context) (snapshot, error) {
	offsets, err := p.admin.FetchOffsets(ctx, p.s.App)
	if err != nil {
		return snapshot{}, err
	}
	at := snapshot{at: time.Now(), machine: lookAtMachine()}
	offsets.Each(func(o kadm.OffsetResponse) {
		if o.Err == nil && o.At > 0 {
			at.done += o.At // the topics have no markers and begin at 0
		}
	})
	at.cpu, err = processTime(p.proc("stat"))
	return at, err
}

func (p *peer) proc(file string) string { return fmt.Sprintf("/proc/%d/%s", p.pid, file) }

// processTime is the CPU time of a process, from its /proc/PID/stat: the 12th and
// 13th field after the name, which is in parentheses and may have spaces.
func processTime(stat string) (float64, error) {
	b, err := os.ReadFile(stat)
	if err != nil {
		return 0, fmt.Errorf("looking at Kafka Streams: %w", err)
	}
	_, rest, ok := strings.Cut(string(b), ") ")
	f := strings.Fields(rest)
	if !ok || len(f) < 13 {
		return 0, errors.New(stat + " is not as expected")
	}
	return seconds(f[11:13])
}
