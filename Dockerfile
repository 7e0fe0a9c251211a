# syntax=docker/dockerfile:1
# The exporter, as a static binary in an image without a shell. The same sources give the same binary on every machine:
# it contains no path, no time and no build id. For an identical image, give both images by digest, VERSION and
# SOURCE_DATE_EPOCH, and build with --output type=image,rewrite-timestamp=true.
ARG GO_IMAGE=golang:1.26.8-bookworm
ARG BASE_IMAGE=gcr.io/distroless/static-debian12:nonroot

FROM --platform=$BUILDPLATFORM ${GO_IMAGE} AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download
COPY cmd cmd
COPY internal internal
ARG TARGETOS TARGETARCH VERSION=devel
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 GOOS=${TARGETOS} GOARCH=${TARGETARCH} GOFLAGS=-mod=readonly \
    go build -trimpath -buildvcs=false -tags noembedded -ldflags "-s -w -buildid= -X main.version=${VERSION}" -o /out/exporter ./cmd/exporter

FROM ${BASE_IMAGE}
ARG SOURCE_DATE_EPOCH VERSION=devel
LABEL org.opencontainers.image.title="kubecdc" \
      org.opencontainers.image.source="https://github.com/kubecdc/kubecdc" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}"
COPY --from=build /out/exporter /usr/local/bin/exporter
USER 65532:65532
EXPOSE 8080
ENTRYPOINT ["/usr/local/bin/exporter"]
CMD ["run", "-f", "/etc/kubecdc/config/config.yaml"]
