// Serves the page of one or more studies over HTTP, on the loopback interface. It cannot change a study.
//
// A request without the token in its path, or with the Host or Origin of another site, is refused.
// Threading: started and destroyed on one thread; answers on threads of its own. Errors: dsat::Error if the port is in
// use.
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
  // Called on the watching thread for each study that can no longer be read, or can be read again.
  using Notice = std::function<void(const std::string& line)>;

  // `port` 0: any free port. The server answers from here on.
  Server(const std::vector<std::filesystem::path>& dirs, int port, Notice notice);
  ~Server();

  const std::string& url() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace dsat::cli

#endif  // DSAT_CLI_SERVE_SERVER_H_
