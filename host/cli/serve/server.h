// The page of one or more studies over HTTP, on the loopback interface, for reading alone.
//
// Who does not know the token in the path is refused, and so is a request with the Host or Origin of another site.
// Threading: started and destroyed on one thread; it answers on threads of its own. Errors: dsat::Error, a port that
// is taken.
#ifndef DSAT_CLI_SERVE_SERVER_H_
#define DSAT_CLI_SERVE_SERVER_H_

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace dsat::cli {

class Server {
 public:
  // Called for each study that can no longer be read, or can be again; on the thread that watches.
  using Notice = std::function<void(const std::string& line)>;

  // `port` 0: any that is free. Answers from here on.
  Server(const std::vector<std::filesystem::path>& dirs, int port, Notice notice);
  ~Server();

  const std::string& url() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace dsat::cli

#endif  // DSAT_CLI_SERVE_SERVER_H_
