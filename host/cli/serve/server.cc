// Every request is answered in one place: checks of Host, Origin and token, then one of three documents. A path in a
// request never becomes a path of a file. A thread of its own reads the studies; the server's end does not wait for it,
// since a file system may hold it for ever.
#include "serve/server.h"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <pthread.h>

#include <atomic>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <optional>
#include <thread>

#include "dsat/base/numbers.h"
#include "dsat/config/json.h"
#include "dsat/error.h"
#include "page/page.h"
#include "serve/http_server.h"
#include "serve/watched_study.h"

namespace dsat::cli {
namespace {

constexpr const char* kAddress = "127.0.0.1";
constexpr auto kLookEvery = std::chrono::milliseconds(100);
// For the first look at the studies, and for the last one to end. Both take a few milliseconds if nothing hangs.
constexpr auto kFirstLook = std::chrono::milliseconds(500), kLastLook = std::chrono::milliseconds(300);

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

constexpr const char* kGuards =
    "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n"
    "Cross-Origin-Resource-Policy: same-origin\r\nX-Frame-Options: DENY\r\n";

// `owner` keeps the document alive until it is sent.
template <class Owner>
HttpAnswer answer_with(const HttpRequest& request, const std::shared_ptr<Owner>& owner, const Document& document,
                       const char* type) {
  HttpAnswer answer;
  answer.headers = fmt::format("ETag: {}\r\nContent-Type: {}; charset=utf-8\r\n", document.tag, type);
  if (request.if_none_match == document.tag) {
    answer.status = 304;
    return answer;
  }
  const bool compressed = request.accept_encoding.find("gzip") != std::string::npos;
  if (compressed) answer.headers += "Content-Encoding: gzip\r\n";
  answer.body = {owner, compressed ? &document.compressed : &document.text};
  return answer;
}

// The studies as they were last read, and their documents.
class Site {
 public:
  Site(const std::vector<std::filesystem::path>& dirs, Server::Notice notice) : notice_(std::move(notice)) {
    for (size_t i = 0; i < dirs.size(); ++i) studies_.push_back(std::make_unique<WatchedStudy>(i, dirs[i]));
  }

  // Until stop(), on the thread that reads.
  void watch() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (!stopped_) {
      lock.unlock();
      look();
      lock.lock();
      has_looked_ = true;
      changed_.notify_all();
      changed_.wait_for(lock, kLookEvery, [this] { return stopped_; });
    }
    has_ended_ = true;
    changed_.notify_all();
  }
  void wait_for_first_look() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait_for(lock, kFirstLook, [this] { return has_looked_; });
  }
  // No notice comes after this.
  void stop() {
    std::unique_lock<std::mutex> lock(mutex_);
    stopped_ = true;
    changed_.notify_all();
    changed_.wait_for(lock, kLastLook, [this] { return has_ended_; });
  }

  HttpAnswer document(const std::string& name, const HttpRequest& request) const {
    const auto page = std::atomic_load(&page_), listed = std::atomic_load(&listed_);
    if ((name.empty() || name == "studies.json") && !listed) return refusal(503, "the studies are being read");
    if (name.empty()) return answer_with(request, page, *page, "text/html");
    if (name == "studies.json") return answer_with(request, listed, *listed, "application/json");
    constexpr std::string_view kFolder = "study/", kExtension = ".json";
    const bool study = name.rfind(kFolder, 0) == 0 && name.size() > kFolder.size() + kExtension.size() &&
                       name.compare(name.size() - kExtension.size(), kExtension.size(), kExtension) == 0;
    const auto number = study ? parse_count(std::string_view(name).substr(
                                    kFolder.size(), name.size() - kFolder.size() - kExtension.size()))
                              : std::nullopt;
    if (!number || static_cast<size_t>(*number) >= studies_.size()) return refusal(404, "no such document here");
    const auto snapshot = studies_[static_cast<size_t>(*number)]->latest();
    if (!snapshot) return refusal(503, "the study is being read");
    if (!snapshot->facts) return refusal(503, snapshot->error);
    return answer_with(request, snapshot, snapshot->page, "application/json");
  }

 private:
  void note(const std::string& line) {
    const std::lock_guard<std::mutex> guard(mutex_);
    if (!stopped_) notice_(line);
  }

  // Reads the studies that have changed. Reports once that a study cannot be read, and once that it can be read again.
  void look() {
    bool changed = false;
    for (const auto& study : studies_) {
      const auto before = study->latest();
      if (!study->refresh()) continue;
      changed = true;
      const std::string& error = study->latest()->error;
      if (!error.empty() && (!before || before->error != error)) note(error);
      if (error.empty() && before && !before->error.empty()) note(study->dir().string() + ": can be read again");
    }
    if (!changed) return;
    Json list = Json::array();
    for (const auto& study : studies_) list.push_back(study->latest()->listed);
    // The bundle has no data in it, and needs to be made only once.
    if (!std::atomic_load(&page_) || !has_bundle()) publish(page_, page());
    publish(listed_, config::text_of(list));
  }

  static void publish(std::shared_ptr<const Document>& place, std::string text) {
    std::atomic_store(&place,
                      std::shared_ptr<const Document>(std::make_shared<Document>(document_of(std::move(text)))));
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

  const Server::Notice notice_;
  std::vector<std::unique_ptr<WatchedStudy>> studies_;
  std::shared_ptr<const Document> page_, listed_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopped_ = false, has_looked_ = false, has_ended_ = false;
};

}  // namespace

class Server::Impl {
 public:
  Impl(const std::vector<std::filesystem::path>& dirs, int port, Notice notice)
      : token_(random_token()), site_(std::make_shared<Site>(dirs, std::move(notice))) {
    http_.emplace(port);
    own_ = fmt::format("{}:{}", kAddress, http_->port());
    own_named_ = fmt::format("localhost:{}", http_->port());
    url_ = fmt::format("http://{}/{}/", own_, token_);
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    std::thread([site = site_] { site->watch(); }).detach();
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    site_->wait_for_first_look();
    http_->start([this](const HttpRequest& request) {
      HttpAnswer given = answer(request);
      given.headers += kGuards;
      return given;
    });
  }

  ~Impl() {
    http_.reset();
    site_->stop();
  }

  const std::string& url() const { return url_; }

 private:
  // A site without a port has port 80, which clients leave out.
  bool is_own(const std::string& site) const {
    const bool is_usual = own_.size() > 3 && own_.compare(own_.size() - 3, 3, ":80") == 0;
    const std::string whole = is_usual && site.find(':') == std::string::npos ? site + ":80" : site;
    return whole == own_ || whole == own_named_;
  }

  HttpAnswer answer(const HttpRequest& request) const {
    if (!is_own(request.host)) return refusal(403, "another Host than this server's");
    if (!request.origin.empty() && (request.origin.rfind("http://", 0) != 0 || !is_own(request.origin.substr(7)))) {
      return refusal(403, "a page of another origin");
    }
    const std::string& path = request.path;
    const size_t end = path.find('/', 1);
    if (end == std::string::npos || path[0] != '/' || !same_token(std::string_view(path).substr(1, end - 1), token_)) {
      return refusal(403, "use the address that dsat-host serve printed: it has a token");
    }
    return site_->document(path.substr(end + 1), request);
  }

  const std::string token_;
  const std::shared_ptr<Site> site_;
  std::string own_, own_named_, url_;
  std::optional<HttpServer> http_;
};

Server::Server(const std::vector<std::filesystem::path>& dirs, int port, Notice notice)
    : impl_(std::make_unique<Impl>(dirs, port, std::move(notice))) {}
Server::~Server() = default;
const std::string& Server::url() const { return impl_->url(); }

}  // namespace dsat::cli
