package stream_test

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	saslplain "github.com/twmb/franz-go/pkg/sasl/plain"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/internal/ownkafka"
	"github.com/semelstream/semel/stream"
)

const (
	appUser     = "app"
	appPassword = "hunter2password"
)

// login is the application's.
func login(password string) func(*stream.Config) {
	return func(c *stream.Config) {
		c.Client = []kgo.Opt{kgo.SASL(saslplain.Auth{User: appUser, Pass: password}.AsMechanism())}
	}
}

// guarded is a cluster in which an application may do only what it was given.
func guarded(t *testing.T, f func(*live)) {
	t.Run("kfake", func(t *testing.T) {
		c, err := kfake.NewCluster(kfake.NumBrokers(1), fakeConfig, kfake.EnableSASL(), kfake.EnableACLs(),
			kfake.Superuser("PLAIN", "admin", "admin"), kfake.User("PLAIN", appUser, appPassword))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		f(liveAt(t, c.ListenAddrs(), kgo.SASL(saslplain.Auth{User: "admin", Pass: "admin"}.AsMechanism())))
	})
	t.Run("kafka", func(t *testing.T) {
		admin, app := guardedKafka(t)
		l := liveAt(t, admin)
		l.addrs = app
		f(l)
	})
}

// guardedKafka has two doors: one without a login for the test, whose nobody
// may do everything, and one with a login for the application.
func guardedKafka(t *testing.T) (admin, app []string) {
	t.Helper()
	if os.Getenv("KAFKA_ADDR") == "" {
		t.Skip("KAFKA_ADDR is not set")
	}
	base := 18000 + 4*rand.IntN(500)
	open, door := fmt.Sprintf("127.0.0.1:%d", base), fmt.Sprintf("127.0.0.1:%d", base+2)
	if ln, err := net.Listen("tcp", door); err != nil {
		t.Skipf("no port: %v", err)
	} else {
		ln.Close()
	}
	c := ownkafka.New(t, "-p", fmt.Sprint(base),
		"-o", fmt.Sprintf("listeners=PLAINTEXT://%s,CONTROLLER://127.0.0.1:%d,SASL_PLAINTEXT://%s", open, base+1, door),
		"-o", fmt.Sprintf("advertised.listeners=PLAINTEXT://%s,SASL_PLAINTEXT://%s", open, door),
		"-o", "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT",
		"-o", "sasl.enabled.mechanisms=PLAIN",
		"-o", fmt.Sprintf("listener.name.sasl_plaintext.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required user_%s=\"%s\";", appUser, appPassword), //nolint:gocritic // JAAS has its own quoting
		"-o", "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
		"-o", "super.users=User:ANONYMOUS",
	)
	return c.Addrs, []string{door}
}

// grant lets the application do something to what begins with the test's name.
func (l *live) grant(kind kmsg.ACLResourceType, op kmsg.ACLOperation) {
	l.t.Helper()
	b := kadm.NewACLs().Allow("User:" + appUser).AllowHosts("*").Operations(op).ResourcePatternType(kadm.ACLPatternPrefixed)
	switch kind {
	case kmsg.ACLResourceTypeTopic:
		b = b.Topics(l.name)
	case kmsg.ACLResourceTypeGroup:
		b = b.Groups(l.name)
	default:
		b = b.TransactionalIDs(l.name)
	}
	res, err := l.adm.CreateACLs(l.ctx(), b)
	l.ok(err)
	for _, r := range res {
		l.ok(r.Err)
	}
}

func TestEachPermissionThatIsMissingIsNamedUntilNoneIs(t *testing.T) {
	guarded(t, func(l *live) {
		in, out := l.topic("in", 1), l.topic("sums", 1)
		const topic, group, id = kmsg.ACLResourceTypeTopic, kmsg.ACLResourceTypeGroup, kmsg.ACLResourceTypeTransactionalId
		for _, step := range []struct {
			missing string
			kind    kmsg.ACLResourceType
			op      kmsg.ACLOperation
		}{
			{"Describe on topic " + l.name, topic, kmsg.ACLOperationDescribe},
			{"DescribeConfigs on topic " + l.name, topic, kmsg.ACLOperationDescribeConfigs},
			{"Read on group " + l.name, group, kmsg.ACLOperationRead},
			{"Create on topic " + l.name + "-sums-changelog", topic, kmsg.ACLOperationCreate},
			{"Write and Describe on the transactional id \"" + l.name + "-", id, kmsg.ACLOperationWrite},
			{"Read on", topic, kmsg.ACLOperationRead},
			{"Write on the outputs", topic, kmsg.ACLOperationWrite},
		} {
			l.produce(in, "a", 1)
			a := l.run(l.sums, login(appPassword))
			a.stops("SEMEL-ACL", "app "+l.name, step.missing)
			if a.logs.has(appPassword) || strings.Contains(a.err.Error(), appPassword) {
				t.Errorf("the password is told, where %s is missing", step.missing)
			}
			l.grant(step.kind, step.op)
		}
		a := l.run(l.sums, login(appPassword))
		l.wants(out, map[string]int64{"a": 7})
		a.stop()
		if a.logs.has(appPassword) {
			t.Error("the password is in the log")
		}
	})
}

// An embedded broker closes the connection instead of saying why.
func TestAWrongPasswordIsAnErrorWithoutThePassword(t *testing.T) {
	admin, app := guardedKafka(t)
	l := liveAt(t, admin)
	l.addrs = app
	a := l.run(l.sums, login("wrong-"+appPassword))
	a.stops("SEMEL-LOGIN", "app "+l.name, "SASL options in Config.Client")
	if a.logs.has(appPassword) || strings.Contains(a.err.Error(), appPassword) {
		t.Errorf("the password is told: %v", a.err)
	}
}

func TestABrokerThatIsAwayForHalfAMinuteCostsNothingButTime(t *testing.T) {
	c := ownkafka.New(t)
	l := liveAt(t, c.Addrs)
	in, out := l.topic("in", 1), l.topic("sums", 1)
	a := l.run(l.sums, nil)
	l.produce(in, "a", 1, 2)
	l.wants(out, map[string]int64{"a": 3})
	// Killed with records on their way.
	enough, some, stopped := make(chan struct{}), make(chan struct{}), make(chan struct{})
	sent := int64(0)
	go func() {
		defer close(stopped)
		b, _ := codec.Int64.Append(nil, 1)
		for {
			select {
			case <-enough:
				return
			default:
			}
			if err := l.cl.ProduceSync(l.ctx(), &kgo.Record{Topic: in, Key: []byte("a"), Value: b}).FirstErr(); err != nil {
				t.Errorf("record %d was not sent: %v", sent, err)
				return
			}
			if sent++; sent == 50 {
				close(some)
			}
		}
	}()
	<-some
	c.Kill(1)
	select { // a clock, since the outage is what is tested
	case <-time.After(30 * time.Second):
	case <-a.done:
		t.Fatalf("it stopped in the outage: %v", a.err)
	}
	c.Start(1)
	close(enough)
	<-stopped
	l.wants(out, map[string]int64{"a": 3 + sent})
	a.stop()
	if n := strings.Count(a.logs.String(), "unable to open connection"); n > 60 {
		t.Errorf("%d lines about connections in 30 s", n)
	}
}
