package config

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// parseServers reads a comma separated list of NATS servers. A server without a scheme has the first one's. Errors do
// not quote the text, and not the cause either: both may hold a password.
func parseServers(text string) ([]*url.URL, error) {
	scheme, _, found := strings.Cut(text, "://")
	if !found || !slices.Contains(schemes(), scheme) {
		return nil, fmt.Errorf("want a URL that begins with one of %s://", strings.Join(schemes(), "://, "))
	}
	var servers []*url.URL
	for one := range strings.SplitSeq(text, ",") {
		one = strings.TrimSpace(one)
		if !strings.Contains(one, "://") {
			one = scheme + "://" + one
		}
		server, err := parseServer(one)
		if err != nil {
			return nil, err
		}
		servers = append(servers, server)
	}
	return servers, nil
}

func parseServer(text string) (*url.URL, error) {
	server, err := url.Parse(text)
	switch {
	case err != nil || server.Hostname() == "":
		return nil, errors.New("want servers such as nats://host:4222, in user and password special characters as %XX")
	case !slices.Contains(schemes(), server.Scheme):
		return nil, fmt.Errorf("want each server to begin with one of %s://", strings.Join(schemes(), "://, "))
	case strings.Trim(server.Path, "/") != "" || server.RawQuery != "" || server.Fragment != "":
		return nil, errors.New("want nothing after a server's port; stream and name have keys of their own")
	}
	return server, nil
}

// cutLogin takes the login out of the servers, of which any number may hold it; nil where none does.
func cutLogin(servers []*url.URL) (*url.Userinfo, error) {
	var login *url.Userinfo
	for _, server := range servers {
		if server.User == nil {
			continue
		}
		if login != nil && *login != *server.User {
			return nil, errors.New("servers have different logins; one sink logs in one way")
		}
		login, server.User = server.User, nil
	}
	return login, nil
}

func joinServers(servers []*url.URL) string {
	texts := make([]string, len(servers))
	for i, server := range servers {
		texts[i] = server.String()
	}
	return strings.Join(texts, ",")
}

// withoutLogin hides what stands between a URL's scheme and its last @, also where that is no valid login.
func withoutLogin(text string) string {
	start, end := 0, strings.LastIndex(text, "@")
	if scheme := strings.Index(text, "://"); scheme >= 0 {
		start = scheme + len("://")
	}
	if end < start {
		return text
	}
	return text[:start] + masked + text[end:]
}
