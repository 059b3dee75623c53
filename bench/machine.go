package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// A machine is where and of what results are, as far as it can be found out.
type machine struct {
	commit, cpu, kernel, memory string
	load                        string // when it began
	began                       time.Time
}

func lookAround() *machine {
	m := &machine{
		commit: commit(), began: time.Now(), load: loadAverage(),
		cpu:    fmt.Sprintf("%s, %d logical CPUs", field("/proc/cpuinfo", "model name"), runtime.NumCPU()),
		memory: field("/proc/meminfo", "MemTotal"),
	}
	if b, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.kernel = runtime.GOOS + " " + strings.TrimSpace(string(b))
	}
	return m
}

// commit is the source's, with a mark if it was changed since.
func commit() string {
	rev, err := exec.Command("git", "rev-parse", "--short=12", "HEAD").Output() //nolint:noctx // it ends at once
	if err != nil {
		return "unknown"
	}
	c := strings.TrimSpace(string(rev))
	dirty, err := exec.Command("git", "status", "--porcelain", "--", "*.go", "go.mod").Output() //nolint:noctx // it ends at once
	if err != nil || len(bytes.TrimSpace(dirty)) > 0 {
		c += " with changes"
	}
	return c
}

// field is a value of a file of "name: value" lines.
func field(file, name string) string {
	b, err := os.ReadFile(file)
	if err != nil {
		return "unknown"
	}
	for line := range strings.Lines(string(b)) {
		if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == name {
			return strings.TrimSpace(v)
		}
	}
	return "unknown"
}

func loadAverage() string {
	b, err := os.ReadFile("/proc/loadavg")
	f := strings.Fields(string(b))
	if err != nil || len(f) < 3 {
		return "unknown"
	}
	return strings.Join(f[:3], " ")
}

// commandLine is how to get such a result again. Files and folders of this
// machine are left out.
func commandLine() string {
	args := []string{"go run ./bench"}
	flag.Visit(func(f *flag.Flag) {
		switch f.Name {
		case "brokers", "dir", "out", "kafka-streams", "cpuprofile", "memprofile":
			args = append(args, "-"+f.Name+"=...")
		default:
			args = append(args, "-"+f.Name+"="+f.Value.String())
		}
	})
	return strings.Join(append(args, flag.Args()...), " ")
}

// header is what every result begins with.
func (m *machine) header(b *bench, what string) string {
	var t strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&t, "%-10s %s\n", name, fmt.Sprintf(format, args...))
	}
	fmt.Fprintf(&t, "Semel: %s\n\n", what)
	line("date", "%s", m.began.UTC().Format("2006-01-02 15:04 MST"))
	line("commit", "%s", m.commit)
	line("command", "%s", commandLine())
	line("go", "%s, GOMAXPROCS %d", runtime.Version(), runtime.GOMAXPROCS(0))
	line("cpu", "%s", m.cpu)
	line("memory", "%s", m.memory)
	line("kernel", "%s", m.kernel)
	line("broker", "%s", b.c.kind)
	if b.warmed {
		line("warm-up", "transactions until the median latency of \"latest\" fell no further, at most %d runs", warmUps)
	}
	line("load", "%s at the start, %s at the end (1, 5, 15 minutes)", m.load, loadAverage())
	return t.String()
}
