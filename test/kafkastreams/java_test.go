package kafkastreams_test

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// javaClasses builds the application with the jars of Kafka Streams, and returns
// its class path. It skips where the jars or what it takes to get them is missing.
func javaClasses(t *testing.T) string {
	var lib, why bytes.Buffer
	cmd := exec.Command(filepath.Join("..", "..", "scripts", "kafka-streams"))
	cmd.Stdout, cmd.Stderr = &lib, &why
	switch err := cmd.Run(); {
	case err == nil:
	case cmd.ProcessState != nil && (cmd.ProcessState.ExitCode() == 3 || cmd.ProcessState.ExitCode() == 4):
		t.Skip(strings.TrimSpace(why.String()))
	default:
		t.Fatalf("%v: %v\n%s", cmd.Args, err, why.String())
	}
	classes, path := t.TempDir(), filepath.Join(strings.TrimSpace(lib.String()), "*")
	output(t, "javac", "-d", classes, "-cp", path, filepath.Join("java", "src", "main", "java", "WordCount.java"))
	return classes + string(os.PathListSeparator) + path
}

func output(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
}

// A javaApp is the application in a process.
type javaApp struct {
	t     *testing.T
	cmd   *exec.Cmd
	stdin io.Closer
	said  said
	ended bool
}

func startJava(t *testing.T, classes string, args ...string) *javaApp {
	t.Helper()
	j := &javaApp{t: t}
	j.cmd = exec.Command("java", append([]string{"-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", classes, "WordCount"}, args...)...)
	j.cmd.Stdout, j.cmd.Stderr = &j.said, &j.said
	in, err := j.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	j.stdin = in
	if err := j.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if !j.ended {
			j.kill()
		}
		if t.Failed() {
			t.Logf("Kafka Streams said:\n%s", j.said.String())
		}
	})
	return j
}

// kill is without warning.
func (j *javaApp) kill() {
	j.ended = true
	_ = j.cmd.Process.Kill()
	_ = j.cmd.Wait()
}

// close lets it end in order.
func (j *javaApp) close() {
	j.t.Helper()
	j.ended = true
	if err := j.stdin.Close(); err != nil {
		j.t.Fatal(err)
	}
	if err := j.cmd.Wait(); err != nil {
		j.t.Fatalf("Kafka Streams ended with %v", err)
	}
}

// said is what a process wrote last.
type said struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.Write(p)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	lines := strings.Split(s.buf.String(), "\n")
	return strings.Join(lines[max(0, len(lines)-60):], "\n")
}
