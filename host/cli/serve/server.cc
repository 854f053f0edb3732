// Every request is answered in one place before cpp-httplib routes it: checks of method, Host, Origin and token, then
// one of three documents. A path in a request never becomes a path of a file.
#include "serve/server.h"

#include <fmt/format.h>
#include <httplib.h>
#include <openssl/crypto.h>
#include <openssl/rand.h>

#include <atomic>
#include <future>
#include <thread>

#include "dsat/base/numbers.h"
#include "dsat/config/json.h"
#include "dsat/error.h"
#include "page/page.h"
#include "serve/watched_study.h"

namespace dsat::cli {
namespace {

constexpr const char* kAddress = "127.0.0.1";
constexpr const char* kJson = "application/json; charset=utf-8";  // the library does not compress this type again
// Each open connection keeps a thread; waiting threads cost almost nothing.
constexpr size_t kThreads = 128;
constexpr size_t kRequestsOfConnection = 1000;
constexpr size_t kMostBodyBytes = 1024;
constexpr int kReadTimeoutSeconds = 2;
constexpr auto kLookEvery = std::chrono::milliseconds(100);

std::string random_token() {
  unsigned char bytes[16];
  if (RAND_bytes(bytes, sizeof bytes) != 1) throw Error(DSAT_INTERNAL, "no random numbers for the address");
  std::string text;
  for (const unsigned char byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

bool same_token(std::string_view given, const std::string& token) {
  return given.size() == token.size() && CRYPTO_memcmp(given.data(), token.data(), token.size()) == 0;
}

void refuse(httplib::Response& response, int status, const std::string& line) {
  response.status = status;
  response.set_header("Connection", "close");
  response.set_content(line + "\n", "text/plain; charset=utf-8");
}

void guard_headers(httplib::Response& response) {
  response.set_header("Cache-Control", "no-store");
  response.set_header("X-Content-Type-Options", "nosniff");
  response.set_header("Referrer-Policy", "no-referrer");
  response.set_header("Cross-Origin-Resource-Policy", "same-origin");
  response.set_header("X-Frame-Options", "DENY");
}

void send(const httplib::Request& request, httplib::Response& response, const Document& document) {
  response.set_header("ETag", document.tag);
  if (request.get_header_value("If-None-Match") == document.tag) {
    response.status = 304;
    return;
  }
  const bool compressed = request.get_header_value("Accept-Encoding").find("gzip") != std::string::npos;
  if (compressed) response.set_header("Content-Encoding", "gzip");
  response.set_content(compressed ? document.compressed : document.text, kJson);
}

}  // namespace

class Server::Impl {
 public:
  Impl(const std::vector<std::filesystem::path>& dirs, int port, Notice notice)
      : notice_(std::move(notice)), token_(random_token()) {
    for (size_t i = 0; i < dirs.size(); ++i) studies_.push_back(std::make_unique<WatchedStudy>(i, dirs[i]));
    look();
    configure();
    listen(port);
  }

  ~Impl() {
    stop_ = true;
    http_.stop();
    if (watching_.joinable()) watching_.join();
    if (answering_.joinable()) answering_.join();
  }

  const std::string& url() const { return url_; }

 private:
  void configure() {
    // The library asks for its threads when it begins to listen. stop() has no effect before, so the constructor waits.
    http_.new_task_queue = [this] {
      listens_.set_value();
      return new httplib::ThreadPool(kThreads);
    };
    http_.set_payload_max_length(kMostBodyBytes);
    http_.set_read_timeout(kReadTimeoutSeconds);
    http_.set_write_timeout(kReadTimeoutSeconds);
    http_.set_keep_alive_timeout(kReadTimeoutSeconds);
    http_.set_keep_alive_max_count(kRequestsOfConnection);
    // The library's default lets a second server share the port unnoticed.
    http_.set_socket_options([](int socket) {
      const int yes = 1;
      setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    });
    http_.set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
      guard_headers(response);
      answer(request, response);
      return httplib::Server::HandlerResponse::Handled;
    });
  }

  void listen(int port) {
    const int bound = port == 0 ? http_.bind_to_any_port(kAddress) : http_.bind_to_port(kAddress, port) ? port : -1;
    if (bound < 0) {
      throw Error(fmt::format("port {} of {} is in use or not allowed: give another --port, or none", port, kAddress));
    }
    site_ = fmt::format("{}:{}", kAddress, bound);
    named_site_ = fmt::format("localhost:{}", bound);
    url_ = fmt::format("http://{}/{}/", site_, token_);
    answering_ = std::thread([this] { http_.listen_after_bind(); });
    listens_.get_future().wait();
    watching_ = std::thread([this] {
      while (!stop_) {
        std::this_thread::sleep_for(kLookEvery);
        look();
      }
    });
  }

  // Reads the studies that have changed. Reports once that a study cannot be read, and once that it can be read again.
  void look() {
    bool changed = false;
    for (const auto& study : studies_) {
      const auto before = study->latest();
      if (!study->refresh()) continue;
      changed = true;
      const std::string& error = study->latest()->error;
      if (!error.empty() && (!before || before->error != error)) notice_(error);
      if (error.empty() && before && !before->error.empty()) notice_(study->dir().string() + ": can be read again");
    }
    if (!changed) return;
    Json list = Json::array();
    for (const auto& study : studies_) list.push_back(study->latest()->listed);
    auto listed = std::make_shared<Document>(document_of(config::text_of(list)));
    std::atomic_store(&listed_, std::shared_ptr<const Document>(std::move(listed)));
  }

  // A site without a port has port 80, which clients leave out.
  bool is_own(const std::string& site) const {
    const bool is_usual = site_.size() > 3 && site_.compare(site_.size() - 3, 3, ":80") == 0;
    const std::string whole = is_usual && site.find(':') == std::string::npos ? site + ":80" : site;
    return whole == site_ || whole == named_site_;
  }

  void answer(const httplib::Request& request, httplib::Response& response) const {
    if (request.method != "GET" && request.method != "HEAD") {
      return refuse(response, 405, "only GET: this page is for reading");
    }
    if (!is_own(request.get_header_value("Host"))) return refuse(response, 403, "another Host than this server's");
    const std::string origin = request.get_header_value("Origin");
    if (!origin.empty() && (origin.rfind("http://", 0) != 0 || !is_own(origin.substr(7)))) {
      return refuse(response, 403, "a page of another origin");
    }
    const std::string& path = request.path;
    const size_t end = path.find('/', 1);
    if (end == std::string::npos || path[0] != '/' || !same_token(std::string_view(path).substr(1, end - 1), token_)) {
      return refuse(response, 403, "use the address that dsat-host serve printed: it has a token");
    }
    document(path.substr(end + 1), request, response);
  }

  void document(const std::string& name, const httplib::Request& request, httplib::Response& response) const {
    if (name.empty()) return response.set_content(page(), "text/html; charset=utf-8");
    if (name == "studies.json") return send(request, response, *std::atomic_load(&listed_));
    constexpr std::string_view kFolder = "study/", kExtension = ".json";
    const bool study = name.rfind(kFolder, 0) == 0 && name.size() > kFolder.size() + kExtension.size() &&
                       name.compare(name.size() - kExtension.size(), kExtension.size(), kExtension) == 0;
    const auto number = study ? parse_count(std::string_view(name).substr(
                                    kFolder.size(), name.size() - kFolder.size() - kExtension.size()))
                              : std::nullopt;
    if (!number || static_cast<size_t>(*number) >= studies_.size()) {
      return refuse(response, 404, "no such document here");
    }
    const auto snapshot = studies_[static_cast<size_t>(*number)]->latest();
    if (!snapshot->facts) return refuse(response, 503, snapshot->error);
    send(request, response, snapshot->page);
  }

  std::string page() const {
    std::vector<std::shared_ptr<const StudySnapshot>> held;
    std::vector<const host::StudyFacts*> facts;
    for (const auto& study : studies_) {
      held.push_back(study->latest());
      if (held.back()->facts) facts.push_back(&*held.back()->facts);
    }
    return served_page(facts);
  }

  const Notice notice_;
  const std::string token_;
  std::string site_, named_site_, url_;
  std::vector<std::unique_ptr<WatchedStudy>> studies_;
  std::shared_ptr<const Document> listed_ = std::make_shared<Document>();
  httplib::Server http_;
  std::promise<void> listens_;
  std::atomic<bool> stop_{false};
  std::thread answering_, watching_;
};

Server::Server(const std::vector<std::filesystem::path>& dirs, int port, Notice notice)
    : impl_(std::make_unique<Impl>(dirs, port, std::move(notice))) {}
Server::~Server() = default;
const std::string& Server::url() const { return impl_->url(); }

}  // namespace dsat::cli
