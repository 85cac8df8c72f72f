// Two engines in one thread, one of which sends messages of 1 MB to the other, for the test that counts what
// the frames of a pulled message cost. The turns of either engine stand in a function of their own, by which
// the counting tool knows them; copies, checksums and this link, which stands for the kernel, are taken off.
// Deterministic: the clock moves by the same step each turn.
//
//   budget_bulk MESSAGES
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "engine/engine.h"
#include "support/fake_environment.h"

namespace {

using namespace cluster;

constexpr std::size_t kMessage = 1024 * 1024;
constexpr std::size_t kUnderWay = 16;
constexpr int kTurnsMax = 1'000'000;
constexpr std::size_t kFrameMax = 1472;
constexpr std::size_t kSuperBytes = 65536;
constexpr Duration kTurn = 2us;

void fail(const char* what) {
  std::fprintf(stderr, "budget_bulk: %s\n", what);
  std::exit(1);
}

/// A run of frames back to back, as segmentation offload leaves it.
struct SuperFrame {
  std::vector<std::byte> bytes = std::vector<std::byte>(kSuperBytes);
  std::size_t size = 0;
};

}  // namespace

/// One end of a wire that loses nothing; external names, for the tool.
class BudgetLink final : public link::Link {
 public:
  BudgetLink(Clock& clock, const SocketAddress& name) : clock_(clock), from_{name, {}, false} {}
  /// Null: what leaves is lost.
  void join(BudgetLink* other) { other_ = other; }

  const char* name() const override { return "budget"; }
  std::size_t frame_max() const override { return kFrameMax; }
  [[gnu::noinline]] std::size_t send_burst(std::span<const link::OutFrame> frames) override {
    if (other_ == nullptr) return frames.size();
    if (other_->count_ == other_->inbox_.size()) return 0;
    SuperFrame& super = other_->inbox_[other_->count_++];
    super.size = 0;
    for (const link::OutFrame& frame : frames) {
      for (std::size_t i = 0; i < frame.count; ++i) {
        std::memcpy(&super.bytes[super.size], frame.pieces[i].data(), frame.pieces[i].size());
        super.size += frame.pieces[i].size();
      }
    }
    frames_ += frames.size();
    return frames.size();
  }
  [[gnu::noinline]] std::size_t receive_burst(std::span<link::InFrame> frames) override {
    inbox_.swap(given_);
    const std::size_t count = std::exchange(count_, 0);
    if (count > frames.size()) fail("too many super-frames in a turn");
    for (std::size_t i = 0; i < count; ++i) {
      frames[i] = {Bytes(given_[i].bytes).first(given_[i].size), other_->from_, clock_.now()};
    }
    return count;
  }
  std::size_t read_path_errors(std::span<link::PathError>) override { return 0; }
  std::uint64_t frames() const { return frames_; }

 private:
  Clock& clock_;
  link::Path from_;
  BudgetLink* other_ = nullptr;
  std::vector<SuperFrame> inbox_ = std::vector<SuperFrame>(link::kBurstMax);
  std::vector<SuperFrame> given_ = std::vector<SuperFrame>(link::kBurstMax);
  std::size_t count_ = 0;  ///< in the inbox
  std::uint64_t frames_ = 0;
};

namespace {

SocketAddress name_of(int last) {
  const std::byte ip[] = {std::byte{10}, std::byte{0}, std::byte{0}, static_cast<std::byte>(last)};
  return SocketAddress::v4(ip, 9228);
}

struct Side {
  Side(test::FakeClock& clock, int number, int other)
      : random(static_cast<std::uint64_t>(number)),
        owned(std::make_unique<BudgetLink>(clock, name_of(number))),
        link(*owned),
        engine({.environment = {clock, random, log, counters},
                .settings = settings(),
                .name = name_of(number),
                .epoch = 1,
                .link = std::move(owned),
                .local_listener = nullptr,
                .resources = nullptr}) {
    book.insert(name_of(other));
    engine.attach(book, {.tx_queue = &completed, .rx_queue = &completed});
  }
  static transport::EngineSettings settings() {
    transport::EngineSettings settings;
    settings.linger = 0s;  // the clock stands still while an engine closes
    return settings;
  }
  std::size_t take_completions() {
    return completed.drain(
        kUnderWay, [](const protocol::Completion&) { return true; }, [](protocol::Completion&) {});
  }

  test::FakeRandom random;
  test::FakeLog log;
  Counters counters;
  transport::AddressTable book;
  protocol::CompletionQueue completed;
  std::unique_ptr<BudgetLink> owned;
  BudgetLink& link;
  engine::Engine engine;
  std::vector<std::byte> memory = std::vector<std::byte>(kMessage);
};

}  // namespace

// The steps. They return something, so that neither ends in a jump, and differ, so that they are not merged.
[[gnu::noipa]] std::size_t budget_sender_turn(Side& sender) {
  sender.engine.poll();
  return sender.take_completions();
}
[[gnu::noipa]] std::size_t budget_receiver_turn(Side& receiver) {
  receiver.engine.poll();
  return receiver.take_completions();
}

namespace {

void transfer(test::FakeClock& clock, Side& sender, Side& receiver, std::size_t count) {
  std::size_t sent = 0;
  std::size_t done = 0;
  for (int turns = 0; done < 2 * count; ++turns) {
    if (turns == kTurnsMax) fail("no end");
    while (sent < count && sent < done / 2 + kUnderWay) {
      const Bytes target = receiver.memory;
      const ConstBytes source = sender.memory;
      if (receiver.engine.receive({.slices = {&target, 1}}) != Status::ok) fail("a receive");
      if (sender.engine.send({.slices = {&source, 1}, .length = kMessage}) != Status::ok) fail("a send");
      ++sent;
    }
    clock.advance(kTurn);
    done += budget_sender_turn(sender);
    clock.advance(kTurn);
    done += budget_receiver_turn(receiver);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int messages = argc == 2 ? std::atoi(argv[1]) : 0;
  if (messages < 1) {
    std::fprintf(stderr, "usage: budget_bulk MESSAGES\n");
    return 2;
  }
  test::FakeClock clock;
  Side sender(clock, 1, 2), receiver(clock, 2, 1);
  sender.link.join(&receiver.link);
  receiver.link.join(&sender.link);
  for (std::size_t i = 0; i < kMessage; ++i) sender.memory[i] = static_cast<std::byte>(i * 2654435761u >> 13);
  transfer(clock, sender, receiver, static_cast<std::size_t>(messages));
  if (sender.counters.frames_retransmitted != 0) fail("a retransmission");
  if (sender.memory != receiver.memory) fail("the data");
  std::printf("frames %llu\n", static_cast<unsigned long long>(sender.link.frames()));
  const Counters& counters = receiver.counters;
  const std::uint64_t again = counters.bytes_received - counters.bytes_checked_in_copy;
  std::printf("read again %.3f\n", static_cast<double>(again) / static_cast<double>(counters.bytes_received));
  sender.link.join(nullptr);  // one of them ends first
  receiver.link.join(nullptr);
  return 0;
}
