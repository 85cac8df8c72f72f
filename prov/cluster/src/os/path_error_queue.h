// Collects the ICMP errors of one port from the error queues of its sockets, and hands them to the engine.
//
// Errors in a queue use space of the socket's receive buffer, and keep the socket readable. A host that
// forges errors can therefore take space from received frames, and can wake sleeping processes. For this
// reason the engine and the keep-alive responder empty the queues as soon as a call on a socket reports an
// error. This object keeps the errors until the engine takes them. A real network sends far fewer than
// kPerInterval errors per kInterval. If more arrive, this object tells the kernel to queue no errors for
// kShut. During this time the kernel drops errors before they reach a queue. Dropping a real error delays the
// engine only for a moment, because the error recurs about once a second.
//
// A forger can choose to which socket of the port the kernel hands the forged errors. Therefore drain() takes
// one error from each socket in turn, so that forged errors at one socket do not delay real errors at
// another.
#pragma once

#include <array>
#include <cstddef>
#include <mutex>
#include <span>
#include <vector>

#include "base/units.h"
#include "link/link.h"

namespace cluster::os {

/// Counts errors. If more than kPerInterval arrive within kInterval, the gate is shut for kShut.
class PathErrorGate {
 public:
  static constexpr int kPerInterval = 64;
  static constexpr Duration kInterval = std::chrono::milliseconds(5);
  static constexpr Duration kShut = std::chrono::milliseconds(100);

  /// Counts an error. If the count exceeds kPerInterval, shuts the gate and returns false.
  bool admit(Time now);
  bool shut() const { return shut_; }
  /// Opens the gate if it has been shut for kShut. Returns true if this call has opened the gate.
  bool reopen(Time now);

 private:
  Time since_{};
  int count_ = 0;
  bool shut_ = false;
};

/// Any thread may call its methods.
class PathErrorQueue {
 public:
  explicit PathErrorQueue(SocketAddress::Family family) : family_(family) {}

  /// Adds a socket of the port. The socket must stay open until remove().
  void add(int socket);
  void remove(int socket);
  /// Empties the error queues of the sockets.
  void drain(Time now);
  /// Adds an error about a frame that this host's firewall has not let out.
  void add_prohibited(const link::OutFrame& frame);
  /// Moves the oldest errors to `errors`, as many as fit. Returns their number.
  std::size_t take(std::span<link::PathError> errors);

 private:
  static constexpr std::size_t kSocketsMax = 3;
  /// The engine takes errors every 5 ms. More than kKept errors in this time are a flood.
  static constexpr std::size_t kKept = 64;

  bool take_from(int socket, Time now);
  void keep(const link::PathError& error);
  void wish_for_errors(bool wanted);

  const SocketAddress::Family family_;
  std::mutex mutex_;
  PathErrorGate gate_;
  std::array<int, kSocketsMax> sockets_{};
  std::size_t count_ = 0;
  /// A ring: if it is full, a new error replaces the oldest. Most ports never have an error, so the first
  /// error allocates the memory.
  std::vector<link::PathError> kept_;
  std::size_t first_ = 0;
  std::size_t waiting_ = 0;
};

}  // namespace cluster::os
