GO ?= go

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: run
run: ## run a three-node cluster on this machine; Ctrl-C stops it
	$(GO) run ./cmd/leasenode dev

.PHONY: generate
generate: ## make the generated code anew
	cd tools && $(GO) run ./protogen -I ../api -module github.com/leasenode/leasenode -out .. leasepb/lease.proto peerpb/peer.proto
