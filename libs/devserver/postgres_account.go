package devserver

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// account is the user a Postgres runs as. cred is nil when that is the user we are.
type account struct {
	uid, gid int
	cred     *syscall.Credential
}

// postgresOwner is ourselves, or for root, whom Postgres refuses, the user postgres, else nobody.
func postgresOwner() (account, error) {
	if os.Geteuid() != 0 {
		return account{uid: os.Geteuid(), gid: os.Getegid()}, nil
	}
	var u *user.User
	var err error
	for _, name := range []string{"postgres", "nobody"} {
		if u, err = user.Lookup(name); err == nil {
			break
		}
	}
	if err != nil {
		return account{}, fmt.Errorf("find a user to run as instead of root: %w", err)
	}
	uid, err := strconv.Atoi(u.Uid)
	if err != nil {
		return account{}, fmt.Errorf("user %s: %w", u.Username, err)
	}
	gid, err := strconv.Atoi(u.Gid)
	if err != nil {
		return account{}, fmt.Errorf("user %s: %w", u.Username, err)
	}
	return account{uid: uid, gid: gid, cred: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}, nil
}

// canReach says whether the account may pass through every folder above dir that exists.
func (a account) canReach(dir string) bool {
	for at := filepath.Dir(dir); ; at = filepath.Dir(at) {
		if real, err := filepath.EvalSymlinks(at); err == nil && real != at {
			if !a.canReach(filepath.Join(real, "x")) {
				return false
			}
		}
		info, err := os.Stat(at)
		if err == nil && !a.mayEnter(info) {
			return false
		}
		if at == filepath.Dir(at) {
			return true
		}
	}
}

// mayEnter checks the execute bit that counts for this account: owner's, group's or others', in that order.
func (a account) mayEnter(info os.FileInfo) bool {
	bit := os.FileMode(0o001)
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		switch {
		case int(st.Uid) == a.uid:
			bit = 0o100
		case int(st.Gid) == a.gid:
			bit = 0o010
		}
	}
	return info.Mode().Perm()&bit != 0
}
