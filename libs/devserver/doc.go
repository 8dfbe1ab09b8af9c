// Package devserver runs real servers (PostgreSQL, Redis, Kafka, OpenSearch) as child processes: for the
// development stack of `make run` and for tests. Production never uses it.
//
// # Model
//
// StartX finds the program on this machine, prepares a data folder, starts the server on 127.0.0.1 and returns when it
// answers. The value stands for the server and its data, not for one process: Stop or Kill ends the process, Start
// begins another on the same data and the same port, so a client's address stays good across a fault.
//
// # Invariants
//
//   - A child is in a process group of its own: Ctrl-C at the terminal reaches the parent alone, which stops its
//     servers last.
//   - A child dies with its parent, also on kill -9 (Linux: parent death signal). That signal is tied to the thread
//     that forked, so one locked thread stays with each child for its whole life.
//   - Data left by a kill -9 of either side starts again; a stale lock is removed only when its owner is gone.
//   - Nothing listens on anything but the loopback interface, and no server asks for a password: any local user may
//     connect, which is why this is for development only.
//
// Programs come from the machine (deploy/dev/install.sh installs them); PostgreSQL falls back to downloaded binaries.
// It feeds services/sluice (`sluice dev`), package servertest and the with-servers command.
package devserver
