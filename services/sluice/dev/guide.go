package dev

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// Line is one row of the table of what runs where.
type Line struct{ Name, Addr, About string }

// Guide is all that is printed once everything is ready.
type Guide struct {
	Lines                                 []Line
	Folder                                string
	Gateways                              []string // host:port
	ControlPlane, Demo                    string   // host:port
	UsageStore                            string
	AdminToken, ReadonlyToken, SluicePath string
	Stores                                []string // key=value: where sluice reconcile finds what it compares
	Took                                  time.Duration
}

// Print writes the guide; its last line starts with "ready".
func (g Guide) Print(w io.Writer) {
	fmt.Fprintln(w)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, l := range g.Lines {
		fmt.Fprintf(table, "  %s\t%s\t%s\n", l.Name, l.Addr, l.About)
	}
	// A terminal that is gone has nobody to tell.
	_ = table.Flush()
	fmt.Fprintf(w, "\n  data folder  %s\n  usage store  %s\n", g.Folder, g.UsageStore)
	fmt.Fprintf(w, `
DEVELOPMENT ONLY: the tokens %s and %s are public, and whoever connects from this
machine is believed when it says X-Tenant-Id. sluice run has neither.

Try it:

  # straight to the service behind: all 40 pass
  for i in $(seq 40); do curl -s -o /dev/null -w '%%{http_code}\n' -H 'X-Tenant-Id: acme' http://%s/demo/hello; done | sort | uniq -c

  # through the gateways, in turn: 10 pass, then the bucket is dry (429)
  for i in $(seq 20); do for gate in %s; do curl -s -o /dev/null -w '%%{http_code}\n' -H 'X-Tenant-Id: acme' http://$gate/demo/hello; done; done | sort | uniq -c

  # what a cut request is told
  curl -i -H 'X-Tenant-Id: acme' http://%s/demo/hello

  # raise the rule; it is in force on both gateways at once
  curl -s -H 'Authorization: Bearer %s' http://%s/v1/rules/hello-gcra \
    | sed 's/"burst":10/"burst":100/' \
    | curl -s -X PUT -H 'Authorization: Bearer %s' -H 'If-Match: *' -H 'Content-Type: application/json' -d @- http://%s/v1/rules/hello-gcra

  # find a decision again: its id is in every answer
  id=$(curl -si -H 'X-Tenant-Id: acme' http://%s/demo/hello | tr -d '\r' | sed -n 's/^[Ss]luice-[Dd]ecision-[Ii]d: //p'); sleep 2
  curl -s -H 'Authorization: Bearer %s' http://%s/v1/decisions/$id
  SLUICE_URL=http://%s SLUICE_TOKEN=%s %s decision $id

  # who used what
  curl -s -H 'Authorization: Bearer %s' 'http://%s/v1/usage?tenantId=acme&limit=3'

  # do Redis, checkpoints, wallets and events agree
  %s reconcile --set '%s'

`,
		g.AdminToken, g.ReadonlyToken,
		g.Demo,
		strings.Join(g.Gateways, " "),
		g.Gateways[0],
		g.AdminToken, g.ControlPlane, g.AdminToken, g.ControlPlane,
		g.Gateways[0], g.ReadonlyToken, g.ControlPlane, g.ControlPlane, g.ReadonlyToken, g.SluicePath,
		g.ReadonlyToken, g.ControlPlane,
		g.SluicePath, strings.Join(g.Stores, "' --set '"))
	fmt.Fprintf(w, "ready after %.1f s; stop with Ctrl-C\n", g.Took.Seconds())
}
