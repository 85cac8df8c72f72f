#include "os/probe_responder.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "os/background_thread.h"
#include "wire/admit.h"
#include "wire/control.h"

namespace cluster::os {
namespace {

constexpr std::size_t kStackBytes = 64 * 1024;
constexpr int kEventsPerTurn = 8;
constexpr int kProbesPerTurn = 64;  // then other endpoints, and whoever wants to leave, have their turn
using Buffer = std::array<std::byte, 64 * 1024>;  // probes of rails are as long as frames

/// Answers one datagram; false if there was none.
bool answer_one(int socket, Buffer& buffer) {
  sockaddr_storage peer;
  socklen_t peer_size = sizeof peer;
  auto* const address = reinterpret_cast<sockaddr*>(&peer);
  const ssize_t got = recvfrom(socket, buffer.data(), buffer.size(), MSG_DONTWAIT, address, &peer_size);
  if (got < 0) return errno != EAGAIN;  // a path_error about an earlier answer: UdpPort reads those
  wire::FrameView view;
  const ConstBytes bytes(buffer.data(), static_cast<std::size_t>(got));
  if (wire::admit(bytes, view) != wire::Refusal::none || view.kind != wire::FrameKind::probe) return true;
  const wire::ControlFrame alive = wire::ControlFrame::alive(view.sequence.value);
  sendto(socket, alive.bytes().data(), alive.bytes().size(), MSG_DONTWAIT, address, peer_size);
  return true;  // an answer that could not be sent is asked for again
}

class ProbeResponder {
 public:
  /// The one of this process; null with an errno in `error`.
  static ProbeResponder* instance(int& error);

  int add(int socket, std::uint64_t& place);
  void remove(std::uint64_t place);
  bool of_this_process() const { return process_ == getpid(); }

 private:
  ProbeResponder() : epoll_(epoll_create1(EPOLL_CLOEXEC)), process_(getpid()) {}
  static void* run(void* self);
  [[noreturn]] void serve();
  void serve_one(std::uint64_t place);
  int watch(int operation, int socket, std::uint64_t place) const;

  Buffer buffer_;     ///< of the thread
  std::mutex mutex_;  ///< held while a place is served: remove() waits for that
  std::unordered_map<std::uint64_t, int> places_;
  std::uint64_t last_place_ = 0;
  const int epoll_;
  const pid_t process_;
};

ProbeResponder* ProbeResponder::instance(int& error) {
  // Neither is ever destroyed: the thread outlives static destructors.
  static std::mutex& mutex = *new std::mutex;
  static ProbeResponder* responder = nullptr;
  const std::lock_guard guard(mutex);
  error = 0;
  if (responder != nullptr && responder->of_this_process()) return responder;
  auto* const fresh = new ProbeResponder;
  error = fresh->epoll_ < 0
              ? errno
              : start_background_thread("cluster-responder", kStackBytes, &ProbeResponder::run, fresh);
  if (error != 0) {
    if (fresh->epoll_ >= 0) close(fresh->epoll_);
    delete fresh;
    return nullptr;
  }
  responder = fresh;
  return responder;
}

void* ProbeResponder::run(void* self) { static_cast<ProbeResponder*>(self)->serve(); }

void ProbeResponder::serve() {
  std::array<epoll_event, kEventsPerTurn> events;
  for (;;) {
    const int count = epoll_wait(epoll_, events.data(), kEventsPerTurn, -1);
    for (int i = 0; i < count; ++i) serve_one(events[static_cast<std::size_t>(i)].data.u64);
  }
}

void ProbeResponder::serve_one(std::uint64_t place) {
  const std::lock_guard guard(mutex_);
  const auto found = places_.find(place);
  if (found == places_.end()) return;  // left since the event
  for (int i = 0; i < kProbesPerTurn; ++i) {
    if (!answer_one(found->second, buffer_)) return;
  }
  watch(EPOLL_CTL_MOD, found->second, place);  // more may wait: be told again
}

/// Edge-triggered, since path_errors that nobody reads would otherwise wake the thread for ever.
int ProbeResponder::watch(int operation, int socket, std::uint64_t place) const {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLET;
  event.data.u64 = place;
  return epoll_ctl(epoll_, operation, socket, &event) == 0 ? 0 : errno;
}

int ProbeResponder::add(int socket, std::uint64_t& place) {
  const std::lock_guard guard(mutex_);
  place = ++last_place_;
  const int error = watch(EPOLL_CTL_ADD, socket, place);
  if (error == 0) places_.emplace(place, socket);
  return error;
}

void ProbeResponder::remove(std::uint64_t place) {
  const std::lock_guard guard(mutex_);
  const auto found = places_.find(place);
  if (found == places_.end()) return;
  epoll_ctl(epoll_, EPOLL_CTL_DEL, found->second, nullptr);
  places_.erase(found);
}

/// What start_probe_responder hands out.
class Place {
 public:
  Place(ProbeResponder& responder, std::uint64_t place, std::shared_ptr<UdpPort> port)
      : keeper_(responder), place_(place), port_(std::move(port)) {}
  ~Place() {
    // In a forked child the mutex may have been inherited locked, and the epoll set is the parent's.
    if (keeper_.of_this_process()) keeper_.remove(place_);
    port_->close_probe_socket();
  }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

 private:
  ProbeResponder& keeper_;
  const std::uint64_t place_;
  const std::shared_ptr<UdpPort> port_;
};

}  // namespace

std::shared_ptr<void> start_probe_responder(std::shared_ptr<UdpPort> port, Log& log) {
  int error = 0;
  const int socket = port->open_probe_socket(error);
  if (socket < 0) {
    log.warn("%s: no second socket to answer probes (%s); peers may take a busy process for dead",
             port->name().text().c_str(), std::strerror(error));
    return nullptr;
  }
  ProbeResponder* const responder = ProbeResponder::instance(error);
  std::uint64_t place = 0;
  if (responder != nullptr) error = responder->add(socket, place);
  if (error != 0) {
    port->close_probe_socket();
    log.warn("%s: no thread to answer probes (%s); peers may take a busy process for dead",
             port->name().text().c_str(), std::strerror(error));
    return nullptr;
  }
  return std::make_shared<Place>(*responder, place, std::move(port));
}

}  // namespace cluster::os
