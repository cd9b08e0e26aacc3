// Command check reads manifests of Kubernetes the way its own types do: fields
// that do not exist, and values of another type, are errors. It is a module of its
// own, for these types bring much that mixdown does not need.
package main

import (
	"errors"
	"fmt"
	"os"

	batch "k8s.io/api/batch/v1"
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

// check wants an indexed Job that tells its pods how many they are.
func check(name string) error {
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	var job batch.Job
	if err := yaml.UnmarshalStrict(data, &job); err != nil {
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
