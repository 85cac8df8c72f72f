// Both ends of a ring at full speed: as two threads over plain memory (what ThreadSanitizer can judge)
// and as processes that are killed in the middle or write rubbish.
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <thread>

#include "os/local_socket.h"
#include "os/shared_memory.h"
#include "shm/hello.h"
#include "shm/local_listener.h"
#include "shm/ring_listener.h"
#include "shm/ring_reader.h"
#include "shm/ring_writer.h"
#include "support/yield_processor.h"
#include "unit/shm/ring_memory.h"

namespace cluster::shm {
namespace {

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_(seed * 2 + 1) {}
  std::uint32_t next() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::uint32_t>(state_ >> 32);
  }

 private:
  std::uint64_t state_;
};

/// Mostly small, now and then as long as allowed; both ends draw the same from the same seed.
std::size_t draw_size(Dice& dice, std::size_t most) {
  switch (dice.next() % 16) {
    case 0: return most;
    case 1: return dice.next() % (most + 1);
    case 2:
    case 3: return dice.next() % 4096;
    default: return dice.next() % 80;
  }
}

/// Payload that can be written and checked faster than Message's: 8-byte words that count from a start.
class Payload {
 public:
  explicit Payload(std::size_t most) : bytes_(most + 8) {}
  Gather fill(std::uint64_t number, std::size_t size) {
    for (std::size_t at = 0; at < size; at += 8) {
      const std::uint64_t word = number * 0x9e3779b97f4a7c15u + at;
      std::memcpy(bytes_.data() + at, &word, 8);
    }
    slice_ = {bytes_.data(), size};
    return {{&slice_, 1}, 0, size};
  }
  bool matches(std::uint64_t number, ConstBytes payload) {
    const Gather wanted = fill(number, payload.size());
    return payload.empty() || std::memcmp(payload.data(), wanted.slices[0].data(), payload.size()) == 0;
  }

 private:
  std::vector<std::byte> bytes_;
  ConstBytes slice_;
};

wire::Segment segment_of(std::uint64_t number, std::size_t size) {
  wire::Segment segment;
  segment.flags = wire::segment_flag::kTagged;
  segment.tag = number;
  segment.length = static_cast<std::uint32_t>(size);
  return segment;
}

/// One direction of traffic, stepwise: send() and receive() never wait.
class Sender {
 public:
  Sender(std::uint64_t seed, std::size_t most) : dice_(seed), most_(most), payload_(most) { draw(); }
  /// `post` takes (segment, payload) and answers false if there is no space.
  template <typename Post>
  bool send(Post&& post) {
    if (!post(segment_of(number_, size_), payload_.fill(number_, size_))) return false;
    ++number_;
    draw();
    return true;
  }
  std::uint64_t number() const { return number_; }

 private:
  void draw() { size_ = draw_size(dice_, most_); }

  Dice dice_;
  std::size_t most_;
  Payload payload_;
  std::uint64_t number_ = 0;
  std::size_t size_ = 0;
};

class Receiver {
 public:
  Receiver(std::uint64_t seed, std::size_t most) : dice_(seed), most_(most), payload_(most) {}
  bool right(const wire::Segment& segment, ConstBytes payload) {
    const std::size_t size = draw_size(dice_, most_);
    const bool good = segment.tag == number_ && payload.size() == size && payload_.matches(number_, payload);
    ++number_;
    return good;
  }
  std::uint64_t number() const { return number_; }

 private:
  Dice dice_;
  std::size_t most_;
  Payload payload_;
  std::uint64_t number_ = 0;
};

void run_threads(const Geometry& geometry, std::uint64_t count, std::uint64_t seed) {
  RingMemory memory(geometry);
  RingWriter writer(memory.bytes(), geometry);
  RingReader reader(memory.bytes(), geometry);
  std::thread other([&] {
    Sender sender(seed, geometry.payload_max());
    while (sender.number() < count) {
      const auto post = [&](const auto& segment, const auto& payload) {
        return writer.post(segment, payload);
      };
      if (!sender.send(post)) test::yield_processor();
    }
  });
  Receiver receiver(seed, geometry.payload_max());
  wire::Segment segment;
  ConstBytes payload;
  bool right = true;
  while (receiver.number() < count && !reader.broken()) {
    if (!reader.peek(segment, payload)) {
      test::yield_processor();
      continue;
    }
    right = right && receiver.right(segment, payload);
    reader.pop();
  }
  other.join();
  EXPECT_TRUE(right);
  EXPECT_FALSE(reader.broken());
  EXPECT_FALSE(writer.broken());
  EXPECT_FALSE(reader.peek(segment, payload));
  EXPECT_TRUE(writer.drained());
}

TEST(ShmRingStress, TwoThreadsSmallestRing) { run_threads(kSmall, 60'000, 1); }
TEST(ShmRingStress, TwoThreadsDefaultRing) { run_threads(Geometry::for_payload(1 << 20), 20'000, 2); }

SocketAddress endpoint_name(std::uint16_t index) {
  const std::byte ip[] = {std::byte{127}, std::byte{0}, std::byte{99}, std::byte{2}};
  return SocketAddress::v4(ip, static_cast<std::uint16_t>((::getpid() % 4000) * 16 + index + 1));
}

class ShmProcesses : public ::testing::Test {
 protected:
  std::unique_ptr<LocalListener> open(const SocketAddress& name) {
    std::string reason;
    std::unique_ptr<LocalListener> host =
        open_listener(name, 1, settings, surroundings.environment(), reason);
    EXPECT_TRUE(host) << reason;
    return host;
  }
  /// Runs `body` in a child that begins with nothing of ours but memory; its answer is the exit code.
  static pid_t start(const std::function<int()>& body) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // a failed test leaves no process spinning
      ::_exit(body());
    }
    return child;
  }
  static int end_of(pid_t child) {
    int status = -1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return status;
  }
  std::unique_ptr<Inbox> await_inbox(LocalListener& host) {
    std::vector<std::unique_ptr<Inbox>> inboxes;
    while (inboxes.empty()) {
      host.accept(inboxes);
      test::yield_processor();
    }
    return std::move(inboxes[0]);
  }
  bool send_some(Outbox& outbox, Sender& sender) {
    return sender.send([&](const wire::Segment& segment, const Gather& payload) {
      return outbox.post(segment, payload, carrier::PayloadMode::copy, 0);
    });
  }

  ShmSettings settings{Geometry::kArenaMin};
  std::size_t most = Geometry::for_payload(Geometry::kArenaMin).payload_max();
  Surroundings surroundings;
  SocketAddress mine = endpoint_name(0);
  SocketAddress theirs = endpoint_name(1);
};

/// What each of two equal processes does: sends `count` and receives `count` at the same time.
int exchange(LocalListener& host, Outbox& outbox, std::size_t most, std::uint64_t count,
             std::uint64_t send_seed, std::uint64_t receive_seed) {
  Sender sender(send_seed, most);
  Receiver receiver(receive_seed, most);
  std::vector<std::unique_ptr<Inbox>> inboxes;
  PeekedSegment arrival;
  while (sender.number() < count || receiver.number() < count || !outbox.drained()) {
    bool moved = false;
    if (sender.number() < count) {
      moved = sender.send([&](const wire::Segment& segment, const Gather& payload) {
        return outbox.post(segment, payload, carrier::PayloadMode::copy, 0);
      });
    }
    if (inboxes.empty()) host.accept(inboxes);
    if (!inboxes.empty() && inboxes[0]->peek(arrival)) {
      if (!receiver.right(arrival.segment, arrival.payload)) return 3;
      inboxes[0]->pop();
      moved = true;
    }
    if (!inboxes.empty() && inboxes[0]->broken()) return 4;
    if (!moved) test::yield_processor();
  }
  // The look that finds nothing also gives back the last segments, for which the peer waits.
  return inboxes[0]->peek(arrival) ? 5 : 0;
}

TEST_F(ShmProcesses, ExchangeBothWaysAtOnce) {
  constexpr std::uint64_t kCount = 30'000;
  const std::unique_ptr<LocalListener> host = open(mine);
  const pid_t child = start([&] {
    const std::unique_ptr<LocalListener> other = open(theirs);
    const Connection connection = other->connect(mine);
    return connection.outbox ? exchange(*other, *connection.outbox, most, kCount, 5, 6) : 2;
  });
  Connection connection;
  while (!connection.outbox) {
    test::yield_processor();  // until the child listens
    connection = host->connect(theirs);
  }
  EXPECT_EQ(exchange(*host, *connection.outbox, most, kCount, 6, 5), 0);
  EXPECT_EQ(end_of(child), 0);
}

TEST_F(ShmProcesses, AKilledWriterLeavesAnUnbrokenBeginning) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const std::unique_ptr<LocalListener> host = open(mine);
    const pid_t child = start([&] {
      const std::unique_ptr<LocalListener> other = open(theirs);
      const Connection connection = other->connect(mine);
      Sender sender(seed, most);
      for (;;) {
        if (!send_some(*connection.outbox, sender)) test::yield_processor();
      }
      return 0;
    });
    const std::unique_ptr<Inbox> inbox = await_inbox(*host);
    Receiver receiver(seed, most);
    PeekedSegment arrival;
    const std::uint64_t kill_at = 100 + seed * 97;
    bool killed = false;
    for (;;) {
      // Asked before looking: what was written before the death is then seen by this look.
      const bool gone = killed && inbox->peer_gone();
      if (inbox->peek(arrival)) {
        ASSERT_TRUE(receiver.right(arrival.segment, arrival.payload)) << receiver.number();
        inbox->pop();
      } else if (gone) {
        break;
      } else {
        test::yield_processor();
      }
      if (!killed && receiver.number() >= kill_at) {
        ::kill(child, SIGKILL);
        killed = true;
      }
    }
    EXPECT_FALSE(inbox->broken());
    EXPECT_GE(receiver.number(), kill_at);
    EXPECT_TRUE(WIFSIGNALED(end_of(child)));
  }
}

TEST_F(ShmProcesses, AKilledReaderIsNoticedByAWriterThatWaitsForSpace) {
  const std::unique_ptr<LocalListener> host = open(mine);
  const pid_t child = start([&] {
    const std::unique_ptr<LocalListener> other = open(theirs);
    const std::unique_ptr<Inbox> inbox = await_inbox(*other);
    PeekedSegment arrival;
    for (int i = 0; i < 1000;) {
      if (!inbox->peek(arrival)) continue;
      inbox->pop();
      ++i;
    }
    for (;;) ::pause();
    return 0;
  });
  Connection connection;
  while (!connection.outbox) {
    test::yield_processor();
    connection = host->connect(theirs);
  }
  Sender sender(1, most);
  while (sender.number() < 1000) send_some(*connection.outbox, sender);
  while (send_some(*connection.outbox, sender)) {
  }
  EXPECT_FALSE(connection.outbox->peer_gone());
  ::kill(child, SIGKILL);
  end_of(child);
  EXPECT_TRUE(connection.outbox->peer_gone());
  EXPECT_FALSE(send_some(*connection.outbox, sender));
}

/// Writes rubbish all over the ring for as long as it lives, much of it nearly right.
int scribble(const SocketAddress& from, const SocketAddress& to) {
  std::string reason;
  const os::LocalSocket socket = os::LocalSocket::connect(socket_name(to), reason);
  os::Descriptor file;
  const os::SharedMemory memory = os::SharedMemory::create(kSmall.total_bytes(), file, reason);
  const Hello hello(from, 1, kSmall);
  if (!socket || !memory || !socket.send(as_bytes(&hello, sizeof hello), file, reason)) return 2;
  RingWriter writer(memory.bytes(), kSmall);
  Sender sender(1, kSmall.payload_max());
  Dice dice(static_cast<std::uint64_t>(::getpid()));
  auto* words = reinterpret_cast<volatile std::uint32_t*>(memory.bytes().data());
  while (!socket.hung_up()) {
    for (int i = 0; i < 50; ++i) {
      sender.send(
          [&](const wire::Segment& segment, const Gather& payload) { return writer.post(segment, payload); });
    }
    const std::size_t slot = (kSmall.slots_begin() + 64 * (dice.next() % kSmall.slots)) / 4;
    words[slot + 1 + dice.next() % 6] = dice.next() % 100'000;
    if (dice.next() % 4 == 0) words[dice.next() % (kSmall.total_bytes() / 4)] = dice.next();
  }
  return 0;
}

TEST_F(ShmProcesses, AScribblerHurtsOnlyItself) {
#ifdef CLUSTER_SANITIZED
  constexpr int kScribblers = 6;  // each takes two seconds there
#else
  constexpr int kScribblers = 30;
#endif
  const std::unique_ptr<LocalListener> host = open(mine);
  for (int round = 0; round < kScribblers; ++round) {
    const pid_t child = start([&] { return scribble(theirs, mine); });
    const std::unique_ptr<Inbox> inbox = await_inbox(*host);
    PeekedSegment arrival;
    unsigned sum = 0;
    for (int i = 0; i < 200'000 && !inbox->broken(); ++i) {
      if (!inbox->peek(arrival)) {
        test::yield_processor();
        continue;
      }
      ASSERT_EQ(arrival.payload.size(), arrival.segment.length);
      ASSERT_LE(arrival.payload.size(), kSmall.arena_bytes);
      for (const std::byte byte : arrival.payload) sum += static_cast<unsigned>(byte);
      inbox->pop();
    }
    RecordProperty("bytes_sum", std::to_string(sum));  // so that every byte shown is really read
    ::kill(child, SIGKILL);
    end_of(child);
  }
  EXPECT_GT(surroundings.counters.refused_malformed, 0u);
}

}  // namespace
}  // namespace cluster::shm
