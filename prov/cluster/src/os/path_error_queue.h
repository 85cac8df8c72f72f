// The ICMP errors of one port, from the error queues of its sockets to the engine.
//
// An error queue shares the socket's receive buffer, and keeps the socket readable: a host that forges errors takes the space of
// frames, and wakes processes that sleep. So the queues are emptied as soon as a call on a socket reports an error, by the engine as by
// the responder, and the errors wait here. If more come than a network has to say (kPerInterval in kInterval), the kernel is
// asked to keep none for kShut: it then drops them before they reach a queue. What is true comes again, one a second.
//
// The kernel hands an error to any socket of the port, which the forger chooses: one is taken from each in turn.
#pragma once

#include <array>
#include <cstddef>
#include <mutex>
#include <span>

#include "base/units.h"
#include "link/link.h"

namespace cluster::os {

/// Counts errors, and says when there are too many.
class PathErrorGate {
 public:
  static constexpr int kPerInterval = 64;
  static constexpr Duration kInterval = std::chrono::milliseconds(5);
  static constexpr Duration kShut = std::chrono::milliseconds(100);

  /// One has come. False: the gate is shut from now on.
  bool admit(Time now);
  bool shut() const { return shut_; }
  /// True if it was shut for long enough, and is open again.
  bool reopen(Time now);

 private:
  Time since_{};
  int count_ = 0;
  bool shut_ = false;
};

/// Any thread may call.
class PathErrorQueue {
 public:
  explicit PathErrorQueue(SocketAddress::Family family) : family_(family) {}

  /// A socket of the port, from now on; it stays open until remove().
  void add(int socket);
  void remove(int socket);
  /// Empties the error queues of the sockets.
  void drain(Time now);
  /// Takes what has waited longest.
  std::size_t take(std::span<link::PathError> errors);

 private:
  static constexpr std::size_t kSocketsMax = 3;
  static constexpr std::size_t kKept = 64;  ///< the engine looks each 5 ms: what is more is a flood

  bool take_from(int socket, Time now);
  void wish_for_errors(bool wanted);

  const SocketAddress::Family family_;
  std::mutex mutex_;
  PathErrorGate gate_;
  std::array<int, kSocketsMax> sockets_{};
  std::size_t count_ = 0;
  std::array<link::PathError, kKept> kept_;  ///< a ring: the oldest gives way
  std::size_t first_ = 0;
  std::size_t waiting_ = 0;
};

}  // namespace cluster::os
