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

// javaClasses builds the application, once Maven has fetched Kafka Streams into
// the user's cache, and returns its class path. It skips where Java or Maven is
// missing.
func javaClasses(t *testing.T) string {
	for _, need := range []string{"java", "javac", "mvn"} {
		if _, err := exec.LookPath(need); err != nil {
			t.Skipf("%s is missing: this test needs a JDK of 17 or newer and Maven (Debian: default-jdk-headless maven)", need)
		}
	}
	lib, classes := kafkaStreamsJars(t), t.TempDir()
	path := filepath.Join(lib, "*")
	output(t, "javac", "-d", classes, "-cp", path, filepath.Join("java", "src", "main", "java", "WordCount.java"))
	return classes + string(os.PathListSeparator) + path
}

const copyDependencies = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"

func kafkaStreamsJars(t *testing.T) string {
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Skipf("there is no cache directory for Kafka Streams: %v", err)
	}
	lib := filepath.Join(cache, "semel", "kafka-streams", "lib-4.4.0")
	if _, err := os.Stat(lib); err == nil {
		return lib
	}
	if os.Getenv("SEMEL_FETCH") == "" {
		t.Skip("Kafka Streams is not in the cache: make test-takeover fetches it (94 MB, once)")
	}
	if err := os.MkdirAll(filepath.Dir(lib), 0o755); err != nil {
		t.Fatal(err)
	}
	// Whole or not at all.
	fetched, err := os.MkdirTemp(filepath.Dir(lib), "fetch") //nolint:usetesting // it stays, under another name
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(fetched)
	t.Log("fetching Kafka Streams 4.4.0 (94 MB, once)")
	output(t, "mvn", "-B", "-q", "-f", filepath.Join("java", "pom.xml"), copyDependencies, "-DincludeScope=runtime", "-DoutputDirectory="+fetched)
	if err := os.Chmod(fetched, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(fetched, lib); err != nil {
		t.Fatal(err)
	}
	return lib
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
