// Package telemetry makes what the pipeline and the streams tell visible: metrics for Prometheus, log lines, and the
// status, health and readiness of the process. It is the only package that imports Prometheus, and knows neither
// pipeline nor sources: its methods have the shapes of their observers' callbacks, and package app ties them together.
package telemetry
