package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"
)

// check returns the faults of a project, in the order of its services' names.
func check(p *types.Project) []string {
	var faults []string
	ports := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(p.Services)) {
		s := p.Services[name]
		found := slices.Concat(checkImage(s), checkHealth(p, s), checkMounts(s), checkPorts(s, ports))
		for _, fault := range found {
			faults = append(faults, name+": "+fault)
		}
	}
	return faults
}

// checkImage wants a tag of three numbers, or a Dockerfile of ours: a tag that moves is another program tomorrow.
func checkImage(s types.ServiceConfig) []string {
	if s.Build != nil {
		file := filepath.Join(s.Build.Context, s.Build.Dockerfile)
		if filepath.IsAbs(s.Build.Dockerfile) {
			file = s.Build.Dockerfile
		}
		if _, err := os.Stat(file); err != nil {
			return []string{err.Error()}
		}
		return nil
	}
	_, tag, _ := strings.Cut(s.Image[strings.LastIndexByte(s.Image, '/')+1:], ":")
	if strings.Count(tag, ".") < 1 || strings.Contains(tag, "latest") {
		return []string{fmt.Sprintf("image %q is not pinned", s.Image)}
	}
	return nil
}

// checkHealth wants a check in each service, and a wait for it in each that depends on it.
func checkHealth(p *types.Project, s types.ServiceConfig) []string {
	var faults []string
	oneShot := s.Restart == types.RestartPolicyNo
	if s.HealthCheck == nil && !oneShot {
		faults = append(faults, "no health check")
	}
	for on, how := range s.DependsOn {
		want := types.ServiceConditionHealthy
		if p.Services[on].Restart == types.RestartPolicyNo {
			want = types.ServiceConditionCompletedSuccessfully
		}
		if how.Condition != want {
			faults = append(faults, fmt.Sprintf("depends on %s as %s, want %s", on, how.Condition, want))
		}
	}
	return faults
}

// checkMounts wants each mounted file: Docker would make an empty folder of its name.
func checkMounts(s types.ServiceConfig) []string {
	var faults []string
	for _, v := range s.Volumes {
		if v.Type != types.VolumeTypeBind {
			continue
		}
		if _, err := os.Stat(v.Source); err != nil {
			faults = append(faults, err.Error())
		}
	}
	return faults
}

// checkPorts notes the published ports in taken and reports those that another service has.
func checkPorts(s types.ServiceConfig, taken map[string]string) []string {
	var faults []string
	for _, port := range s.Ports {
		if other, ok := taken[port.Published]; ok {
			faults = append(faults, fmt.Sprintf("port %s is %s's already", port.Published, other))
		}
		taken[port.Published] = s.Name
	}
	return faults
}
