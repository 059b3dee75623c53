package main

import (
	"context"
	"fmt"
	"net"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

// runBroker is the embedded broker, in a process of its own so that its CPU
// and memory are not the application's.
func runBroker(ctx context.Context, out *events) error {
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.BrokerConfigs(map[string]string{"log.segment.bytes": "1048576"}))
	if err != nil {
		return err
	}
	defer c.Close()
	out.send(event{Kind: eventAddress, Text: strings.Join(c.ListenAddrs(), ",")})
	<-ctx.Done()
	return nil
}

// A cluster is the Kafka that is measured on.
type cluster struct {
	brokers  []string
	kind     string // for the report
	embedded *process
	cl       *kgo.Client
	admin    *kadm.Client
}

// openCluster takes the brokers at addr, or starts an embedded one.
func openCluster(ctx context.Context, addr string) (*cluster, error) {
	c := &cluster{}
	if addr != "" {
		c.brokers = strings.Split(addr, ",")
	} else {
		p, err := start(spec{Kind: kindBroker})
		if err != nil {
			return nil, err
		}
		c.embedded = p
		e, err := p.await(ctx, "its address", 0, func(e event) bool { return e.Kind == eventAddress })
		if err != nil {
			p.kill()
			return nil, fmt.Errorf("the embedded broker: %w", err)
		}
		c.brokers = strings.Split(e.Text, ",")
	}
	var err error
	if c.cl, err = kgo.NewClient(kgo.SeedBrokers(c.brokers...), kgo.DisableClientMetrics()); err != nil {
		c.close()
		return nil, err
	}
	c.admin = kadm.NewClient(c.cl)
	if c.kind, err = c.describe(ctx); err != nil {
		c.close()
		return nil, fmt.Errorf("asking the brokers: %w", err)
	}
	return c, nil
}

// describe says what kind of Kafka it is.
func (c *cluster) describe(ctx context.Context) (string, error) {
	meta, err := c.admin.BrokerMetadata(ctx)
	if err != nil {
		return "", err
	}
	if c.embedded != nil {
		return "embedded (kfake), one broker in a process of its own on this machine", nil
	}
	versions, err := c.admin.ApiVersions(ctx)
	if err != nil {
		return "", err
	}
	guess := "unknown version"
	for _, v := range versions {
		guess = v.VersionGuess()
	}
	return fmt.Sprintf("Apache Kafka %s, brokers: %d, %s", guess, len(meta.Brokers), c.place()), nil
}

// place says whether broker and application share a machine.
func (c *cluster) place() string {
	host, _, err := net.SplitHostPort(c.brokers[0])
	if ip := net.ParseIP(host); err == nil && (host == "localhost" || ip != nil && ip.IsLoopback()) {
		return "on this machine"
	}
	return "reached over the network"
}

func (c *cluster) close() {
	if c.cl != nil {
		c.cl.Close()
	}
	if c.embedded != nil {
		c.embedded.kill()
	}
}
