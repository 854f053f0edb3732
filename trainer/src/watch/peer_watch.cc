// One thread writes and reads notes; on ranks other than 0 a second one guards against a rank 0 that does not answer.
// Rank 0 judges, the first cause noted wins, and rank 0 leaves last, because the notes end with it.
#include "watch/peer_watch.h"

#include <fmt/format.h>

#include <exception>
#include <sstream>
#include <utility>

namespace dsat::trainer {
namespace {

constexpr char kCause[] = "watch.cause";
constexpr std::chrono::milliseconds kSoon{10};
// For others to read a cause before they are killed, and for a cause to be found when a peer is lost.
constexpr std::chrono::seconds kNotice{2};
constexpr std::chrono::seconds kFinding = RankWatch::kSilence + std::chrono::seconds(2);

std::string name_of(const char* what, int rank) { return fmt::format("watch.{}.{}", what, rank); }

std::string to_text(const Cause& cause) { return fmt::format("{} {}", cause.status, cause.text); }

Cause to_cause(const std::string& text) {
  std::istringstream in(text);
  Cause cause;
  in >> cause.status;
  in.get();
  std::getline(in, cause.text);
  return cause;
}

Cause death_of(int rank) {
  return {1, fmt::format("rank {} has ended without a word: killed, perhaps for want of memory", rank)};
}

// Without a beat's number, which makes it differ from the one before.
std::optional<Beat> to_beat(const std::string& text) { return parse_beat(text.substr(text.find(' ') + 1)); }

}  // namespace

PeerWatch::PeerWatch(std::unique_ptr<Notes> notes, int rank, int size, End end)
    : notes_(std::move(notes)), rank_(rank), size_(size), end_(std::move(end)), peers_(static_cast<size_t>(size)) {
  // Who is stopped later can be killed only if it is known by then.
  notes_->write(name_of("process", rank), PeerProcess::own_name());
  for (meet(0); !peers_[0].is_known; meet(0)) std::this_thread::sleep_for(kSoon);
  answered_ = Clock::now();
  for (int r = 0; r < size && rank == 0; ++r) watch_.started(r, answered_.load());
  thread_ = std::thread([this] { run(); });
  if (rank != 0) guard_ = std::thread([this] { wait_for_answers(); });
}

PeerWatch::~PeerWatch() {
  if (thread_.joinable()) leave();
}

void PeerWatch::wait_for_cause() { std::this_thread::sleep_for(kFinding); }

void PeerWatch::leave(const std::optional<Cause>& own) {
  own_ = own;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    is_leaving_ = true;
  }
  changed_.notify_all();
  thread_.join();
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    is_over_ = true;
  }
  changed_.notify_all();
  if (guard_.joinable()) guard_.join();
}

bool PeerWatch::pause(std::chrono::milliseconds time) {
  std::unique_lock<std::mutex> lock(mutex_);
  return !changed_.wait_for(lock, time, [this] { return is_leaving_; });
}

// If this process has been stopped itself, the time begins anew.
void PeerWatch::wait_for_answers() {
  std::unique_lock<std::mutex> lock(mutex_);
  Clock::time_point looked = Clock::now();
  while (!changed_.wait_for(lock, kBeatInterval, [this] { return is_over_; })) {
    const Clock::time_point now = Clock::now();
    if (now - looked > 4 * kBeatInterval) answered_ = now;
    looked = now;
    if (now - answered_.load() <= RankWatch::kSilence) continue;
    const bool is_leaving = is_leaving_;
    lock.unlock();
    peers_[0].process.kill();
    end_once(is_leaving && own_ ? *own_ : loss_of_keeper());
  }
}

void PeerWatch::end_once(const Cause& cause) {
  std::call_once(ended_, [&] { end_(cause); });
}

void PeerWatch::run() {
  try {
    do {
      look();
    } while (pause(kBeatInterval));
    say_goodbye();
  } catch (const std::exception&) {
    // A rank that leaves needs no answer any more.
    if (!pause({})) return;
    peers_[0].process.kill();
    end_once(loss_of_keeper());
  }
}

void PeerWatch::say_goodbye() {
  if (own_) notes_->write_first(kCause, to_text(*own_));
  notes_->write(name_of("left", rank_), "");
  if (rank_ != 0) return;
  if (own_) return wait_for_others(Clock::now() + kNotice);
  while (!have_left(/*or_died=*/false)) {
    look();
    std::this_thread::sleep_for(kSoon);  // the store has no call that waits for a note of another rank
  }
}

void PeerWatch::look() {
  const Beat beat = current_beat();
  if (rank_ == 0) {
    watch_.receive(0, beat, Clock::now());
    return look_as_keeper();
  }
  notes_->write(name_of("beat", rank_), fmt::format("{} {}", ++beats_, to_line(beat)));
  if (const auto cause = notes_->read(kCause)) end_with(to_cause(*cause));
  answered_ = Clock::now();
}

void PeerWatch::look_as_keeper() {
  std::optional<Cause> found;
  for (int r = 1; r < size_; ++r) {
    Peer& peer = peers_[static_cast<size_t>(r)];
    const bool has_ended = peer.process.has_ended();  // before its notes are read: they may be its last
    receive(r);
    if (!has_ended || peer.has_left || found) continue;
    found = death_of(r);
  }
  if (const auto noted = notes_->read(kCause)) found = to_cause(*noted);
  if (const auto wrong = watch_.verdict(Clock::now()); wrong && !found) found = Cause{1, *wrong};
  if (found) end_with(*found);
}

void PeerWatch::receive(int rank) {
  Peer& peer = peers_[static_cast<size_t>(rank)];
  if (peer.has_left) return;
  if (!peer.is_known) meet(rank);
  if (const auto text = notes_->read(name_of("beat", rank)); text && *text != peer.last_beat) {
    peer.last_beat = *text;
    if (const auto beat = to_beat(*text)) watch_.receive(rank, *beat, Clock::now());
  }
  peer.has_left = notes_->read(name_of("left", rank)).has_value();
  if (peer.has_left) watch_.ended(rank);
}

void PeerWatch::meet(int rank) {
  const auto name = notes_->read(name_of("process", rank));
  if (!name) return;
  Peer& peer = peers_[static_cast<size_t>(rank)];
  peer.is_known = true;
  peer.process = PeerProcess(*name);
}

bool PeerWatch::have_left(bool or_died) {
  bool all = true;
  for (int r = 1; r < size_; ++r) {
    receive(r);
    const Peer& peer = peers_[static_cast<size_t>(r)];
    all = all && (peer.has_left || (or_died && peer.process.has_ended()));
  }
  return all;
}

void PeerWatch::wait_for_others(Clock::time_point end) {
  while (!have_left(/*or_died=*/true) && Clock::now() < end) std::this_thread::sleep_for(kSoon);
  for (const Peer& peer : peers_) {
    if (!peer.has_left) peer.process.kill();
  }
}

// The notes end with rank 0's process: it goes last.
void PeerWatch::end_with(const Cause& cause) {
  try {
    notes_->write_first(kCause, to_text(cause));
    notes_->write(name_of("left", rank_), "");
    if (rank_ == 0) wait_for_others(Clock::now() + kNotice);
  } catch (const std::exception&) {  // rank 0 has ended meanwhile, after it had noted the cause
  }
  end_once(cause);
}

Cause PeerWatch::loss_of_keeper() const {
  if (peers_[0].process.has_ended() || Clock::now() - answered_.load() < RankWatch::kSilence / 2) {
    return death_of(0);
  }
  return {1, RankWatch::silence_of(0)};
}

}  // namespace dsat::trainer
