// A small HTTP/1.1 server on the loopback interface, for reading: it answers GET and HEAD.
//
// Everything that a client decides has a bound: the bytes of a request's head (414, 431), the time until it is whole,
// the time that an answer takes, the number of connections. The oldest connection makes room for a new one, so clients
// that are slow on purpose keep nobody out. A body, a range and a second Host are not served.
// Threading: one thread of its own runs the handler; made and destroyed on another. The destructor waits for no client.
// Errors: dsat::Error if the port is in use.
#ifndef DSAT_CLI_SERVE_HTTP_SERVER_H_
#define DSAT_CLI_SERVE_HTTP_SERVER_H_

#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace dsat::cli {

struct HttpRequest {
  std::string method, path;  // without the query
  std::string host, origin, if_none_match, accept_encoding;
};

struct HttpAnswer {
  int status = 200;
  std::string headers;                      // further lines, each with \r\n
  std::shared_ptr<const std::string> body;  // shared by all who are sent it; null: none
};

class HttpServer {
 public:
  using Handler = std::function<HttpAnswer(const HttpRequest&)>;
  explicit HttpServer(int port);  // 0: any free port
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;
  int port() const;
  void start(Handler handler);  // once

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// Closes the connection after a line of text.
HttpAnswer refusal(int status, const std::string& line);

// Reads the head of a request, without its last empty line. Returns the answer if it is refused: status 0 if it is not.
HttpAnswer read_head(std::string_view head, HttpRequest& request, bool& keeps_alive);

}  // namespace dsat::cli

#endif  // DSAT_CLI_SERVE_HTTP_SERVER_H_
