# HCP: the two commands a newcomer needs are `make demo` and `make test`.
.DEFAULT_GOAL := help
SHELL := /usr/bin/env bash

.PHONY: help demo demo-clean build test check bench gen clean

help: ## list the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: ## one real virtual machine, made by HCP on this machine (installs libvirt and QEMU)
	@deploy/demo/demo.sh

demo-clean: ## remove everything that make demo started or made
	@deploy/demo/clean.sh

build: ## build bin/hcpd and bin/hcpctl
	@deploy/ci/build.sh

test: ## install what the tests need and run all of them
	@deploy/ci/test.sh

check: ## format, vet, staticcheck, house rules, short tests; installs nothing
	@deploy/ci/check.sh

bench: ## measure HCP on this machine, beside the machine's own limits
	@deploy/ci/bench.sh

gen: ## write everything that is generated from code
	@go run ./cmd/hcpgen

clean: ## remove build results (not the demo, see demo-clean)
	@rm -rf bin && go clean -testcache
