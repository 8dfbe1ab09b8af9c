package fleet

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"
)

// taskEnv makes a program one process of a fleet: its value is the task in JSON.
const taskEnv = "SLUICE_BENCH_TASK"

// Task reads this process's task into v; it is false in a program that nobody gave one.
func Task(v any) (bool, error) {
	text, ok := os.LookupEnv(taskEnv)
	if !ok {
		return false, nil
	}
	if err := json.Unmarshal([]byte(text), v); err != nil {
		return true, fmt.Errorf("read %s: %w", taskEnv, err)
	}
	return true, nil
}

var saying sync.Mutex

// Say tells the parent a line, from any goroutine.
func Say(line string) {
	saying.Lock()
	defer saying.Unlock()
	_, _ = io.WriteString(os.Stdout, line+"\n") // a parent that is gone has ended us too
}

// Report tells the parent v, in JSON.
func Report(v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	Say(string(text))
	return nil
}
