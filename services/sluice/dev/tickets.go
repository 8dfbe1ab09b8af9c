package dev

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// TicketKeys is the file of the keys of a data folder's portal.
func TicketKeys(data string) string { return filepath.Join(data, fileTickets) }

// MakeTicketKeys makes that file with a key of its own, where there is none.
func MakeTicketKeys(data string) error {
	var secret [32]byte
	// It never fails (crypto/rand, Go 1.24 and later).
	_, _ = rand.Read(secret[:])
	file, err := os.OpenFile(TicketKeys(data), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, os.ErrExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("make the portal's keys: %w", err)
	}
	_, err = fmt.Fprintf(file, "dev %s\n", base64.StdEncoding.EncodeToString(secret[:]))
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("make the portal's keys: %w", err)
	}
	return nil
}
