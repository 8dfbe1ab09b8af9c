package outbox

import (
	"context"
	"errors"
	"fmt"
	"regexp"

	"github.com/jackc/pgx/v5"
)

// Publication is the one that the outbox migration makes.
const Publication = "sluice_outbox"

// slotName is what Postgres allows, so that a name needs no quoting.
var slotName = regexp.MustCompile(`^[a-z0-9_]{1,63}$`)

// CheckSlotName says what is wrong with the name of a slot.
func CheckSlotName(name string) error {
	if !slotName.MatchString(name) {
		return fmt.Errorf("replication slot %q: up to 63 lower-case letters, digits and underscores are allowed", name)
	}
	return nil
}

// SlotState is a replication slot as the server sees it.
type SlotState struct {
	// Exists is false where there is no slot of that name; then nothing else is set.
	Exists bool
	// HolderPID is the server process that reads it, 0 if none does.
	HolderPID uint32
	// Lost: the server has removed WAL that the slot had not delivered.
	Lost bool
	// LagBytes is the WAL written since the position that was confirmed last.
	LagBytes int64
}

// ReadSlot looks at a slot. A slot of that name which belongs to another
// database or another plugin is an error: names are shared by all databases
// of a server.
func ReadSlot(ctx context.Context, conn *pgx.Conn, slot string) (SlotState, error) {
	const query = `SELECT coalesce(active_pid, 0), coalesce(wal_status, '') = 'lost',
			coalesce(pg_wal_lsn_diff(pg_current_wal_lsn(), confirmed_flush_lsn), 0)::bigint,
			coalesce(database = current_database() AND plugin = 'pgoutput', false)
		FROM pg_replication_slots WHERE slot_name = $1`
	s := SlotState{Exists: true}
	var ours bool
	err := conn.QueryRow(ctx, query, slot).Scan(&s.HolderPID, &s.Lost, &s.LagBytes, &ours)
	if errors.Is(err, pgx.ErrNoRows) {
		return SlotState{}, nil
	}
	if err != nil {
		return SlotState{}, fmt.Errorf("look at replication slot %s: %w", slot, err)
	}
	if !ours {
		return SlotState{}, fmt.Errorf("replication slot %s belongs to another database or plugin; choose another name", slot)
	}
	return s, nil
}

// DropSlot removes a slot that nobody reads.
func DropSlot(ctx context.Context, conn *pgx.Conn, slot string) error {
	if _, err := conn.Exec(ctx, `SELECT pg_drop_replication_slot($1)`, slot); err != nil {
		return fmt.Errorf("drop replication slot %s: %w", slot, err)
	}
	return nil
}
