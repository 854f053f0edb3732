// One HTTP request to a server that a user names, over TLS for https.
//
// Threading: any thread; blocks for at most the time limits. Errors: dsat::Error, INTERNAL: one line without the
// address, which may hold a password ("cannot connect: Connection refused").
#ifndef DSAT_CLI_EXPORT_HTTP_CLIENT_H_
#define DSAT_CLI_EXPORT_HTTP_CLIENT_H_

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace dsat::cli {

struct Site {
  bool tls = false;
  std::string host, port;
  std::string path;  // without a slash at its end
};

// The parts of "http://HOST:PORT/PATH", also with [IPV6]; nullopt: this is not such an address.
std::optional<Site> site_of(const std::string& uri);

struct ClientRequest {
  std::string method, target, body;
  std::vector<std::pair<std::string, std::string>> headers;
};

struct ClientAnswer {
  unsigned status = 0;
  std::string body;
};

// A longer answer than `most_bytes` is an error and is not read.
ClientAnswer send(const Site& site, const ClientRequest& request, size_t most_bytes);

}  // namespace dsat::cli

#endif  // DSAT_CLI_EXPORT_HTTP_CLIENT_H_
