// One thread polls all connections. A connection reads a head, sends an answer, and reads the next head, or is drained
// for a moment and closed: a close with unread bytes would take the answer away from its client.
#include "serve/http_server.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <list>
#include <thread>
#include <utility>
#include <vector>

#include "dsat/error.h"

namespace dsat::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kAddress = "127.0.0.1";
constexpr size_t kMostHeadBytes = 8 << 10, kMostLineBytes = 4 << 10;
constexpr size_t kMostDrainedBytes = 1 << 20;
constexpr size_t kMostConnections = 256;
constexpr int kMostRequests = 1000;  // of a connection
constexpr auto kHeadTime = std::chrono::seconds(5), kAnswerTime = std::chrono::seconds(30),
               kDrainTime = std::chrono::seconds(1);

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

const char* reason_of(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 304:
      return "Not Modified";
    case 400:
      return "Bad Request";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 414:
      return "URI Too Long";
    case 431:
      return "Request Header Fields Too Large";
    default:
      return "Service Unavailable";
  }
}

class Connection {
 public:
  explicit Connection(Descriptor socket) : socket_(std::move(socket)), deadline_(Clock::now() + kHeadTime) {}

  int socket() const { return socket_.get(); }
  Clock::time_point deadline() const { return deadline_; }
  Clock::time_point since() const { return since_; }
  short wanted() const { return state_ == State::answers ? POLLOUT : POLLIN; }

  // Reads and writes what goes without waiting. Returns false when the connection has ended.
  bool go_on(const HttpServer::Handler& handler) {
    for (;;) {
      const State before = state_;
      const bool lives = state_ == State::reads ? read_more(handler) : state_ == State::answers ? send_more() : drain();
      if (!lives) return false;
      if (state_ == before) return true;
      if (state_ == State::reads) answer_next(handler);  // it may have sent several requests at once
    }
  }

 private:
  enum class State { reads, answers, drains };

  void enter(State state, Clock::duration time) {
    state_ = state;
    since_ = Clock::now();
    deadline_ = since_ + time;
  }

  bool read_more(const HttpServer::Handler& handler) {
    char block[4096];
    const ssize_t n = recv(socket(), block, sizeof block, 0);
    if (n < 0) return errno == EAGAIN || errno == EINTR;
    if (n == 0) return false;
    unread_.append(block, static_cast<size_t>(n));
    answer_next(handler);
    return true;
  }

  // If a whole head has come, or too much without an end, the answer follows.
  void answer_next(const HttpServer::Handler& handler) {
    request_ = {};
    const size_t crlf = unread_.find("\r\n\r\n"), lf = unread_.find("\n\n");
    const size_t end = std::min(crlf, lf);
    if (end == std::string::npos || end > kMostHeadBytes) {
      const bool long_line = std::min(unread_.find('\n'), unread_.size()) > kMostLineBytes;
      if (long_line) return answer(refusal(414, "the address is too long"));
      if (unread_.size() > kMostHeadBytes) return answer(refusal(431, "the headers are too long"));
      return;
    }
    bool keeps_alive = false;
    HttpAnswer next = read_head(std::string_view(unread_).substr(0, end), request_, keeps_alive);
    unread_.erase(0, end + (end == crlf ? 4 : 2));
    keeps_alive_ = next.status == 0 && keeps_alive && ++requests_ < kMostRequests;
    answer(next.status == 0 ? handler(request_) : std::move(next));
  }

  void answer(HttpAnswer answer) {
    keeps_alive_ = keeps_alive_ && answer.headers.find("Connection: close") == std::string::npos;
    head_ = fmt::format("HTTP/1.1 {} {}\r\n{}", answer.status, reason_of(answer.status), answer.headers);
    const size_t bytes = answer.body ? answer.body->size() : 0;
    if (answer.status != 304) head_ += fmt::format("Content-Length: {}\r\n", bytes);
    if (!keeps_alive_ && head_.find("Connection: close") == std::string::npos) head_ += "Connection: close\r\n";
    head_ += "\r\n";
    body_ = request_.method == "HEAD" ? nullptr : std::move(answer.body);
    sent_ = 0;
    enter(State::answers, kAnswerTime);
  }

  bool send_more() {
    const std::string empty;
    const std::string& body = body_ ? *body_ : empty;
    const size_t of_head = std::min(sent_, head_.size()), of_body = sent_ - of_head;
    iovec parts[] = {{head_.data() + of_head, head_.size() - of_head},
                     {const_cast<char*>(body.data()) + of_body, body.size() - of_body}};
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = 2;
    const ssize_t n = sendmsg(socket(), &message, MSG_NOSIGNAL);
    if (n < 0) return errno == EAGAIN || errno == EINTR;
    sent_ += static_cast<size_t>(n);
    if (sent_ < head_.size() + body.size()) return true;
    body_.reset();
    if (keeps_alive_) {
      enter(State::reads, kHeadTime);
    } else {
      unread_ = std::string();
      shutdown(socket(), SHUT_WR);
      enter(State::drains, kDrainTime);
    }
    return true;
  }

  bool drain() {
    char block[4096];
    const ssize_t n = recv(socket(), block, sizeof block, 0);
    if (n < 0) return errno == EAGAIN || errno == EINTR;
    drained_ += static_cast<size_t>(n);
    return n > 0 && drained_ < kMostDrainedBytes;
  }

  Descriptor socket_;
  State state_ = State::reads;
  Clock::time_point since_ = Clock::now(), deadline_;
  std::string unread_, head_;
  HttpRequest request_;
  std::shared_ptr<const std::string> body_;
  size_t sent_ = 0, drained_ = 0;
  bool keeps_alive_ = false;
  int requests_ = 0;
};

Descriptor listening_socket(int port) {
  Descriptor fd(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const int yes = 1;
  setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  inet_pton(AF_INET, kAddress, &address.sin_addr);
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      listen(fd.get(), SOMAXCONN) != 0) {
    throw Error(fmt::format("port {} of {} is in use or not allowed: give another --port, or none", port, kAddress));
  }
  return fd;
}

}  // namespace

class HttpServer::Impl {
 public:
  explicit Impl(int port) : listening_(listening_socket(port)), stop_(eventfd(0, EFD_CLOEXEC)) {
    if (stop_.get() < 0) throw Error(DSAT_INTERNAL, "no more files can be opened: the server cannot start");
  }

  ~Impl() {
    eventfd_write(stop_.get(), 1);
    if (thread_.joinable()) thread_.join();
  }

  void start(Handler handler) {
    handler_ = std::move(handler);
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    thread_ = std::thread([this] { serve(); });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  int port() const {
    sockaddr_in address{};
    socklen_t size = sizeof address;
    getsockname(listening_.get(), reinterpret_cast<sockaddr*>(&address), &size);
    return ntohs(address.sin_port);
  }

 private:
  void serve() {
    std::vector<pollfd> polled;
    for (;;) {
      polled.assign({{stop_.get(), POLLIN, 0}, {listening_.get(), POLLIN, 0}});
      auto next = Clock::now() + std::chrono::hours(1);
      for (const Connection& one : connections_) {
        polled.push_back({one.socket(), one.wanted(), 0});
        next = std::min(next, one.deadline());
      }
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - Clock::now()).count();
      poll(polled.data(), polled.size(), static_cast<int>(std::max<int64_t>(0, left)));
      if (polled[0].revents != 0) return;
      size_t at = 2;
      const auto now = Clock::now();
      connections_.remove_if([&](Connection& one) {
        const bool is_ready = polled[at++].revents != 0;
        return (is_ready && !one.go_on(handler_)) || one.deadline() <= now;
      });
      if (polled[1].revents != 0) accept_more();
    }
  }

  // A request has usually come with its connection, and is answered at once.
  void accept_more() {
    constexpr int kAtOnce = 64;
    for (int i = 0; i < kAtOnce; ++i) {
      if (connections_.size() >= kMostConnections) drop_oldest();
      Descriptor socket(accept4(listening_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (socket.get() < 0) {
        if (errno == EMFILE || errno == ENFILE) drop_oldest();
        return;
      }
      connections_.emplace_back(std::move(socket));
      if (!connections_.back().go_on(handler_)) connections_.pop_back();
    }
  }

  void drop_oldest() {
    const auto oldest =
        std::min_element(connections_.begin(), connections_.end(),
                         [](const Connection& a, const Connection& b) { return a.since() < b.since(); });
    if (oldest != connections_.end()) connections_.erase(oldest);
  }

  Handler handler_;
  const Descriptor listening_, stop_;
  std::list<Connection> connections_;
  std::thread thread_;
};

HttpServer::HttpServer(int port) : impl_(std::make_unique<Impl>(port)) {}
HttpServer::~HttpServer() = default;
int HttpServer::port() const { return impl_->port(); }
void HttpServer::start(Handler handler) { impl_->start(std::move(handler)); }

}  // namespace dsat::cli
