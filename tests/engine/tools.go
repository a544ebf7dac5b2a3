//go:build tools

// Package engine pins the command-line tool that the tests run.
package engine

import _ "github.com/pulumi/pulumi/pkg/v3/cmd/pulumi"
