package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"sync"
	"time"
)

// Kinds of child processes.
const (
	kindApp          = "app"
	kindFloor        = "floor"
	kindFloorTxn     = "floor-txn"
	kindFloorSession = "floor-session"
	kindBroker       = "broker"
	kindPeer         = "kafka-streams"
)

// A spec is what a child process is to do. It travels as one argument.
type spec struct {
	Kind     string
	Topology string // of kindApp; see topologies
	Brokers  []string
	App      string // application id, group or transactional id
	In, Out  string // topics
	Dir      string // state directory

	Records     int64 // the child ends when so many are committed; 0: when it is told to
	AtLeastOnce bool
	Stay        bool // keep the tasks after the end
	Workers     int
	Commit      time.Duration // as stream.Config.CommitInterval
	Linger      time.Duration // of producers

	KafkaStreams string // folder of jars, of kindPeer

	CPUProfile, MemProfile string // files, for the measured part
}

// argument is s as the child reads it.
func (s spec) argument() string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // a struct of plain fields
	}
	return string(b)
}

// Kinds of events.
const (
	eventAddress = "address" // of the embedded broker
	eventState   = "state"   // of the app
	eventRestore = "restore"
	eventWarning = "warning" // something that should not happen in a benchmark
	eventResult  = "result"
	eventRows    = "rows" // in the store, answer to a question
)

// An event is what a child tells its driver, a line of JSON each.
type event struct {
	Kind    string
	At      time.Time
	Text    string   `json:",omitempty"`
	Restore *restore `json:",omitempty"`
	Result  *result  `json:",omitempty"`
}

// A restore is the progress of one store, as of stream.Restore.
type restore struct {
	Task, Store    string
	Reason         string
	Records, Bytes int64
	Took           time.Duration
	Done           bool
}

// A result is what a child measured of itself, from the mark to the end.
type result struct {
	Records  int64   // committed
	Seconds  float64 // they took
	CPU      float64 // seconds of user and system
	Others   float64 // the same of all other processes of the machine: above all the broker's
	Idle     float64 // seconds that the machine's processors had nothing to do; 0 like Others if nobody tells
	Mallocs  uint64
	Bytes    uint64  // allocated
	GC       float64 // seconds of CPU in the collector
	PeakRSS  int64   // bytes, of the whole run
	Commits  int
	Aborts   int
	Whole    bool // the mark came too late: measured from the first record on
	Txn      quantiles
	Commit   quantiles // from the decision to commit until it is known to be committed
	Flush    quantiles // the parts of Commit: state to the producer,
	Prepare  quantiles // waiting for records and offsets to be written,
	EndTxn   quantiles // ending the transaction
	Unsteady bool      `json:",omitempty"` // more was committed than there is
}

// rate is records per second.
func (r *result) rate() float64 { return float64(r.Records) / r.Seconds }

// cpu is microseconds of CPU per record.
func (r *result) cpu() float64 { return r.CPU * 1e6 / float64(r.Records) }

// others is microseconds of CPU per record outside the child, NaN if nobody tells.
func (r *result) others() float64 {
	if r.Idle+r.Others == 0 {
		return math.NaN()
	}
	return r.Others * 1e6 / float64(r.Records)
}

// idle is the part of the machine's time that nobody used, in percent, NaN if
// nobody tells.
func (r *result) idle() float64 {
	if r.Idle+r.Others == 0 {
		return math.NaN()
	}
	return 100 * r.Idle / (r.Idle + r.Others + r.CPU)
}

// events writes events for the driver.
type events struct {
	mu  sync.Mutex
	out io.Writer
}

func (e *events) send(v event) {
	v.At = time.Now()
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // structs of plain fields; NaN was kept out
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	_, _ = e.out.Write(append(b, '\n')) // if the driver is gone, so are we
}

func (e *events) warn(format string, args ...any) {
	e.send(event{Kind: eventWarning, Text: fmt.Sprintf(format, args...)})
}
