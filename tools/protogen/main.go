// Command protogen compiles .proto files with protocompile and feeds them to
// protoc-gen-go and protoc-gen-go-grpc, so that generating needs Go and nothing
// else. Run it with make generate.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/protoutil"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

func main() {
	importDir := flag.String("I", ".", "folder that imports are relative to")
	outDir := flag.String("out", ".", "folder that the module's import path stands for")
	module := flag.String("module", "", "import path to strip from the generated files' names")
	flag.Parse()
	if err := run(*importDir, *outDir, *module, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "protogen:", err)
		os.Exit(1)
	}
}

func run(importDir, outDir, module string, files []string) error {
	compiler := protocompile.Compiler{
		Resolver:       protocompile.WithStandardImports(&protocompile.SourceResolver{ImportPaths: []string{importDir}}),
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	compiled, err := compiler.Compile(context.Background(), files...)
	if err != nil {
		return fmt.Errorf("compile: %w", err)
	}
	seen := map[string]bool{}
	var all []*descriptorpb.FileDescriptorProto
	for _, file := range compiled {
		all = appendWithImports(all, seen, file)
	}
	for _, plugin := range []string{"protoc-gen-go", "protoc-gen-go-grpc"} {
		request := &pluginpb.CodeGeneratorRequest{FileToGenerate: files, Parameter: proto.String("module=" + module), ProtoFile: all}
		if err := generate(plugin, request, outDir); err != nil {
			return fmt.Errorf("%s: %w", plugin, err)
		}
	}
	return nil
}

// appendWithImports lists files in the order that plugins want: imports first.
func appendWithImports(all []*descriptorpb.FileDescriptorProto, seen map[string]bool, file protoreflect.FileDescriptor) []*descriptorpb.FileDescriptorProto {
	if seen[file.Path()] {
		return all
	}
	seen[file.Path()] = true
	for i := range file.Imports().Len() {
		all = appendWithImports(all, seen, file.Imports().Get(i).FileDescriptor)
	}
	return append(all, protoutil.ProtoFromFileDescriptor(file))
}

func generate(plugin string, request *pluginpb.CodeGeneratorRequest, outDir string) error {
	in, err := proto.Marshal(request)
	if err != nil {
		return err
	}
	cmd := exec.Command("go", "tool", plugin)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return err
	}
	response := &pluginpb.CodeGeneratorResponse{}
	if err := proto.Unmarshal(out, response); err != nil {
		return err
	}
	if response.Error != nil {
		return fmt.Errorf("%s", response.GetError())
	}
	for _, file := range response.File {
		if err := os.WriteFile(filepath.Join(outDir, file.GetName()), []byte(file.GetContent()), 0o644); err != nil {
			return err
		}
	}
	return nil
}
