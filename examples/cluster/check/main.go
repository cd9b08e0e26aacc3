// Command check reads manifests of Kubernetes the way its own types do: fields
// that do not exist, and values of another type, are errors. It is a module of its
// own, for these types bring much that mixdown does not need.
package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	mpi "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

func main() {
	for _, name := range os.Args[1:] {
		if err := check(name); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
			os.Exit(1)
		}
		fmt.Printf("%s: ok\n", name)
	}
}

// check reads every document of a manifest.
func check(name string) error {
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	jobs := 0
	for _, document := range strings.Split(string(data), "\n---\n") {
		var kind struct{ APIVersion, Kind string }
		if err := yaml.Unmarshal([]byte(document), &kind); err != nil {
			return err
		}
		switch kind.APIVersion + " " + kind.Kind {
		case "v1 Service":
			err = yaml.UnmarshalStrict([]byte(document), &core.Service{})
		case "batch/v1 Job":
			jobs++
			err = checkJob(document)
		case "kubeflow.org/v2beta1 MPIJob":
			jobs++
			err = checkMPIJob(document)
		default:
			err = fmt.Errorf("a %s of %q is not known", kind.Kind, kind.APIVersion)
		}
		if err != nil {
			return err
		}
	}
	if jobs == 0 {
		return errors.New("no job is in it")
	}
	return nil
}

// checkMPIJob wants a launcher and as many workers as the replay needs.
func checkMPIJob(document string) error {
	var job mpi.MPIJob
	if err := yaml.UnmarshalStrict([]byte(document), &job); err != nil {
		return err
	}
	launcher, workers := job.Spec.MPIReplicaSpecs[mpi.MPIReplicaTypeLauncher], job.Spec.MPIReplicaSpecs[mpi.MPIReplicaTypeWorker]
	if launcher == nil || workers == nil || workers.Replicas == nil || job.Spec.SlotsPerWorker == nil {
		return errors.New("it has no launcher, or no number of workers or slots")
	}
	return nil
}

// checkJob wants an indexed Job that tells its pods how many they are.
func checkJob(document string) error {
	var job batch.Job
	if err := yaml.UnmarshalStrict([]byte(document), &job); err != nil {
		return err
	}
	spec := job.Spec
	if job.APIVersion != "batch/v1" || job.Kind != "Job" || job.Name == "" {
		return fmt.Errorf("it is a %s of %s, not a Job", job.Kind, job.APIVersion)
	}
	if spec.CompletionMode == nil || *spec.CompletionMode != batch.IndexedCompletion || spec.Completions == nil {
		return errors.New("its completions are not indexed")
	}
	if spec.BackoffLimitPerIndex != nil && spec.Template.Spec.RestartPolicy != "Never" {
		return errors.New("backoffLimitPerIndex needs restartPolicy Never")
	}
	if len(spec.Template.Spec.Containers) != 1 {
		return errors.New("it has not one container")
	}
	for _, v := range spec.Template.Spec.Containers[0].Env {
		if v.Name == "JOB_COMPLETIONS" {
			if v.Value != fmt.Sprint(*spec.Completions) {
				return fmt.Errorf("JOB_COMPLETIONS is %s of %d", v.Value, *spec.Completions)
			}
			return nil
		}
	}
	return errors.New("JOB_COMPLETIONS is not set")
}
