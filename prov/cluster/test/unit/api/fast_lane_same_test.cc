// The same application, once with the fast lane and once without: every operation ends in the same way, with the same
// message. When it ends, and so the order of what the queues report, may differ by some reads. The application draws its
// calls from a seed.
#include <algorithm>
#include <array>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "api/endpoint.h"
#include "unit/api/api_world.h"

namespace cluster::api::test {
namespace {

constexpr std::uint64_t kSeeds = 12;
constexpr int kSteps = 800;
constexpr int kQuiet = 40;  ///< reads of all queues after which every message has been delivered or stored
constexpr std::uint64_t kAny = ~std::uint64_t{0};

/// A run of the application, and what it has seen.
class Run final : public PairTest {
 public:
  Run(std::uint64_t seed, bool fast_lane) : dice_(seed) {
    platform.alone = platform.one_node = true;
    platform.settings.fast_lane = fast_lane;
    platform.settings.shm_eager_max = 1024;  // longer ones are announced
    info.info.caps |= FI_FENCE;
    start();
    connect();
  }
  void TestBody() override {}

  /// What the queues have reported, sorted.
  std::string play() {
    for (int step = 0; step < kSteps; ++step) act();
    for (int i = 0; i < kSteps; ++i) {  // a receive for everything that is still on its way
      receive(left, FI_ADDR_UNSPEC, kAny, i % 2 == 0);
      receive(right, FI_ADDR_UNSPEC, kAny, i % 2 == 0);
      read_all();
    }
    for (int i = 0; i < 1000; ++i) read_all();
    std::sort(seen_.begin(), seen_.end());
    std::string all;
    for (const std::string& line : seen_) all += line + '\n';
    return all;
  }
  std::uint64_t fast_sent() const { return counters().fast_sent; }
  std::uint64_t fast_received() const { return counters().fast_received; }

 private:
  struct Buffer {
    std::array<unsigned char, 2048> bytes;
  };

  Counters counters() const { return object_of<Endpoint>(&left.endpoint->fid).opened_engine()->counters(); }
  std::uint64_t below(std::uint64_t limit) {
    dice_ ^= dice_ << 13;
    dice_ ^= dice_ >> 7;
    dice_ ^= dice_ << 17;
    return (dice_ * 0x2545F4914F6CDD1Du >> 33) % limit;
  }
  Buffer& fresh_buffer() {
    buffers_.push_back(std::make_unique<Buffer>());
    buffers_.back()->bytes.fill(static_cast<unsigned char>(buffers_.size()));
    return *buffers_.back();
  }
  void* next_context() { return reinterpret_cast<void*>(++contexts_); }

  /// Opens the rings both ways; afterwards no turn is due by the clock.
  void connect() {
    for (int turn = 0; turn < 20; ++turn) {
      for (const auto& [from, to] : {std::pair{&left, to_right}, std::pair{&right, to_left}}) {
        std::uint64_t word = 0;
        fi_cq_tagged_entry entry{};
        const Node& other = from == &left ? right : left;
        EXPECT_EQ(fi_trecv(other.endpoint, &word, 8, nullptr, FI_ADDR_UNSPEC, 0, 0, nullptr), 0);
        EXPECT_EQ(fi_tinject(from->endpoint, &word, 8, to, 0), 0);
        EXPECT_EQ(await(other.receives, entry), 1);
      }
    }
    platform.clock().step = 0us;
  }
  void act() {
    Node& node = below(2) == 0 ? left : right;
    switch (below(9)) {
      case 0:
      case 1:
      case 2: return send(node);
      case 3:
      case 4: {
        const fi_addr_t peer = &node == &left ? to_right : to_left;
        return receive(node, below(3) == 0 ? peer : FI_ADDR_UNSPEC, below(4) == 0 ? kAny : 0, below(4) != 0);
      }
      case 5: return below(4) == 0 ? cancel(node) : read(node.receives, 1 + below(4));
      case 8: return peek(node);
      case 6: return below(8) == 0 ? receive_many(node) : read(node.sends, 1 + below(4));
      default: return read_all();
    }
  }
  void send(Node& node) {
    const fi_addr_t to = &node == &left ? to_right : to_left;
    const std::uint64_t tag = below(3);
    Buffer& buffer = fresh_buffer();
    const std::size_t size = below(6) == 0 ? below(buffer.bytes.size()) : below(48);
    void* const context = next_context();
    const void* const bytes = buffer.bytes.data();
    iovec part{buffer.bytes.data(), size};
    const fi_msg_tagged message{&part, nullptr, 1, to, tag, 0, context, 0};
    const std::uint64_t way = below(8), flags = below(2) == 0 ? FI_FENCE : FI_DELIVERY_COMPLETE;
    const auto post = [&]() -> ssize_t {
      switch (way) {
        case 0: return fi_send(node.endpoint, bytes, size, nullptr, to, context);
        case 1: return fi_tinject(node.endpoint, bytes, std::min<std::size_t>(size, 64), to, tag);
        case 2: return fi_tsenddata(node.endpoint, bytes, size, nullptr, tag + 9, to, tag, context);
        case 3: return fi_tsendmsg(node.endpoint, &message, flags);
        default: return fi_tsend(node.endpoint, bytes, size, nullptr, to, tag, context);
      }
    };
    ssize_t result = post();
    for (int i = 0; i < kSteps && result == -FI_EAGAIN; ++i) {
      read_all();
      result = post();
    }
    EXPECT_EQ(result, 0);
  }
  void receive(Node& node, fi_addr_t from, std::uint64_t ignore, bool tagged) {
    Buffer& buffer = fresh_buffer();
    const std::size_t size = below(4) == 0 ? below(64) : buffer.bytes.size();
    void* const context = next_context();
    const ssize_t result =
        tagged ? fi_trecv(node.endpoint, buffer.bytes.data(), size, nullptr, from, below(3), ignore, context)
               : fi_recv(node.endpoint, buffer.bytes.data(), size, nullptr, from, context);
    EXPECT_EQ(result, 0);
  }
  void peek(Node& node) {
    const fi_msg_tagged wanted{nullptr, nullptr, 0, FI_ADDR_UNSPEC, below(3), 0, next_context(), 0};
    EXPECT_EQ(fi_trecvmsg(node.endpoint, &wanted, FI_PEEK), 0);
  }
  void receive_many(Node& node) {
    Buffer& buffer = fresh_buffer();
    iovec part{buffer.bytes.data(), 512};
    const fi_msg message{&part, nullptr, 1, FI_ADDR_UNSPEC, next_context(), 0};
    EXPECT_EQ(fi_recvmsg(node.endpoint, &message, FI_MULTI_RECV), 0);
  }
  /// Cancels what is still posted when no message is under way any more.
  void cancel(Node& node) {
    const auto context = reinterpret_cast<void*>(1 + below(contexts_ + 1));
    for (int i = 0; i < kQuiet; ++i) read_all();
    see("cancel", fi_cancel(&node.endpoint->fid, context));
  }
  void read(fid_cq* cq, std::size_t count) {
    std::array<fi_cq_tagged_entry, 8> entries{};
    std::array<fi_addr_t, 8> sources{};
    const ssize_t result = fi_cq_readfrom(cq, entries.data(), count, sources.data());
    for (ssize_t i = 0; i < result; ++i) {
      const fi_cq_tagged_entry& entry = entries[static_cast<std::size_t>(i)];
      std::ostringstream bytes;
      const auto* from = static_cast<const unsigned char*>(entry.buf);
      for (std::size_t at = 0; from != nullptr && at < entry.len; at += 7) bytes << ' ' << int{from[at]};
      see(entry.op_context, entry.flags, entry.len, entry.tag, entry.data,
          static_cast<std::int64_t>(sources[static_cast<std::size_t>(i)]), bytes.str());
    }
    if (result != -FI_EAVAIL) return;
    fi_cq_err_entry error{};
    fi_cq_readerr(cq, &error, 0);
    see("error", error.err, error.op_context, error.flags, error.len, error.olen, error.tag);
  }
  template <typename... Values>
  void see(const Values&... values) {
    std::ostringstream line;
    ((line << values << ' '), ...);
    seen_.push_back(line.str());
  }
  void read_all() {
    for (const Node* node : {&left, &right}) {
      for (fid_cq* cq : {node->sends, node->receives}) read(cq, 8);
    }
  }

  std::uint64_t dice_;
  std::uint64_t contexts_ = 0;
  std::vector<std::unique_ptr<Buffer>> buffers_;
  std::vector<std::string> seen_;
};

struct Seen {
  std::string text;
  std::uint64_t sent = 0, received = 0;
};
Seen play(std::uint64_t seed, bool fast_lane) {
  Run run(seed, fast_lane);
  const std::string text = run.play();
  return {text, run.fast_sent(), run.fast_received()};
}

TEST(FastLaneSameTest, TheApplicationSeesNoDifference) {
  std::uint64_t sent = 0, received = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const Seen with = play(seed, true), without = play(seed, false);
    ASSERT_EQ(with.text, without.text) << "seed " << seed;
    EXPECT_EQ(without.sent + without.received, 0u);
    sent += with.sent;
    received += with.received;
  }
  EXPECT_GT(sent, kSeeds * kSteps / 50) << "the lane was in use";
  EXPECT_GT(received, kSeeds);
}

}  // namespace
}  // namespace cluster::api::test
