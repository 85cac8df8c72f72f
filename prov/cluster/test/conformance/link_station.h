// One end of a link under test, with frames that can be distinguished and checked: each begins with its
// length and its number, and the rest follows from the number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/environment.h"
#include "link/link.h"
#include "os/ring_table.h"
#include "os/system_clock.h"
#include "os/system_random.h"
#include "os/udp_port.h"

namespace cluster::test {

class QuietLog final : public Log {
 public:
  bool enabled(LogLevel) const override { return true; }
  /// The thread that watches interfaces writes as well.
  void write(LogLevel, const char* line) override {
    const std::lock_guard lock(mutex_);
    text_ += std::string(line) + "\n";
  }
  std::string text() const {
    const std::lock_guard lock(mutex_);
    return text_;
  }

 private:
  mutable std::mutex mutex_;
  std::string text_;
};

/// What an engine would be given.
struct World {
  os::SystemClock clock;
  os::SystemRandom random;
  QuietLog log;
  Counters counters;
  Environment environment{clock, random, log, counters};
};

struct Numbered {
  std::uint32_t number;
  std::size_t size;
  bool intact;
  link::Path from;
  bool joined = false;      ///< it came together with others
  std::size_t segment = 0;  ///< as the link says of the arrival
};

inline constexpr std::size_t kNumberedMin = 8;

/// A frame of `size` bytes (at least kNumberedMin).
std::vector<std::byte> numbered(std::uint32_t number, std::size_t size);

struct Station {
  World world;
  std::shared_ptr<os::UdpPort> port;
  std::unique_ptr<link::Link> link;
  SocketAddress queue_pair;                    ///< of a verbs link
  std::shared_ptr<const os::RingTable> rings;  ///< of the group of a packet link

  SocketAddress name() const { return queue_pair.empty() ? port->name() : queue_pair; }
  /// One send_burst; each frame in two pieces.
  std::size_t send_once(const link::Path& path, const std::vector<std::vector<std::byte>>& frames);
  /// Repeats while the link has no space.
  void send(const link::Path& path, const std::vector<std::vector<std::byte>>& frames);
  /// Polls until `count` frames are there or nothing came for a while.
  std::vector<Numbered> receive(std::size_t count);
  /// Polls once.
  std::vector<Numbered> poll();
  /// Asks until there is a path_error or for too long.
  std::vector<link::PathError> await_path_error();
};

/// Repeats `done` until it is true; false after ten seconds.
bool eventually(const std::function<bool()>& done);

}  // namespace cluster::test
