#include "os/send_batch.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <thread>
#include <vector>

#include "os/descriptor.h"

namespace {

/// What a device answers next, instead of the kernel: how often ENOBUFS for a message of several frames.
thread_local int refusals = 0;

}  // namespace

/// Goes before libc's in this program: only a device past its queueing discipline refuses for lack of
/// buffers.
extern "C" int sendmmsg(int socket, mmsghdr* messages, unsigned count, int flags) {
  if (refusals > 0) {
    --refusals;
    errno = ENOBUFS;
    return -1;
  }
  return static_cast<int>(syscall(SYS_sendmmsg, socket, messages, count, flags));
}

namespace cluster::os {
namespace {

class RunLength : public ::testing::Test {
 protected:
  std::size_t run(std::initializer_list<std::size_t> sizes) {
    frames_.clear();
    for (const std::size_t size : sizes) frames_.push_back(frame(size, here_));
    return run_length(frames_);
  }
  static link::OutFrame frame(std::size_t size, const link::Path& path) {
    link::OutFrame out;
    out.path = &path;
    out.size = size;
    return out;
  }

  link::Path here_;
  link::Path there_;
  std::vector<link::OutFrame> frames_;
};

TEST_F(RunLength, EqualSizesAndOneShorterAtTheEnd) {
  EXPECT_EQ(run({}), 0U);
  EXPECT_EQ(run({100}), 1U);
  EXPECT_EQ(run({100, 100, 100}), 3U);
  EXPECT_EQ(run({100, 100, 40}), 3U);
  EXPECT_EQ(run({100, 100, 40, 40}), 3U) << "a shorter one ends the super-frame";
  EXPECT_EQ(run({100, 40, 100}), 2U);
  EXPECT_EQ(run({100, 101}), 1U);
}

TEST_F(RunLength, StaysWithOnePath) {
  frames_ = {frame(100, here_), frame(100, here_), frame(100, there_)};
  EXPECT_EQ(run_length(frames_), 2U);
}

TEST_F(RunLength, StaysWithinWhatAPacketHolds) {
  frames_.assign(100, frame(1472, here_));
  EXPECT_EQ(run_length(frames_), 44U);
  frames_.assign(100, frame(64, here_));
  EXPECT_EQ(run_length(frames_), 64U);
  frames_.assign(3, frame(64000, here_));
  EXPECT_EQ(run_length(frames_), 1U);
}

/// A socket pair that takes datagrams without headers, so that the batch alone is looked at.
class Submit : public ::testing::Test {
 protected:
  Submit() {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, ends), 0);
    in_ = Descriptor(ends[0]);
    out_ = Descriptor(ends[1]);
  }
  void add(std::size_t frames, std::size_t size) {
    batch_.open(frames, size);
    batch_.add(ConstBytes(data_).first(size));
  }

  Descriptor in_;
  Descriptor out_;
  std::vector<std::byte> data_ = std::vector<std::byte>(4 << 20);
  Counters counters_;
  SendBatch batch_{true};
};

TEST_F(Submit, CountsFramesNotMessages) {
  add(3, 10);
  add(1, 10);
  const SendBatch::Outcome outcome = batch_.submit(in_.number(), counters_);
  EXPECT_EQ(outcome.frames, 4U);
  EXPECT_FALSE(outcome.buffers_full);
}

TEST_F(Submit, PiecesThatLieBackToBackAreOneForTheKernel) {
  const ConstBytes data(data_);
  const msghdr& first = batch_.open(3, 100);
  for (const std::size_t begin : {0, 100, 250}) batch_.add(data.subspan(begin, 100));
  EXPECT_EQ(first.msg_iovlen, 2U);
  const msghdr& second = batch_.open(1, 100);
  batch_.add(data.subspan(350, 100));
  EXPECT_EQ(second.msg_iovlen, 1U) << "not of two messages";
  EXPECT_EQ(batch_.submit(in_.number(), counters_).frames, 4U);
  std::array<std::byte, 400> came;
  EXPECT_EQ(recv(out_.number(), came.data(), came.size(), 0), 300);
  EXPECT_EQ(recv(out_.number(), came.data(), came.size(), 0), 100);
}

struct Lone : Submit {
  std::size_t send(std::size_t size, std::size_t front = 0) {
    const ConstBytes data(data_);
    link::OutFrame frame;
    frame.add(data.subspan(front, size));
    return batch_.send_lone(nullptr, 0, data.first(front), frame, in_.number(), counters_);
  }
};

TEST_F(Lone, HasItsHeadersInFront) {
  EXPECT_EQ(send(100, 20), 1U);
  EXPECT_EQ(send(100), 1U);
  std::array<std::byte, 400> came;
  EXPECT_EQ(recv(out_.number(), came.data(), came.size(), 0), 120);
  EXPECT_EQ(recv(out_.number(), came.data(), came.size(), 0), 100);
}

TEST_F(Lone, IsDroppedIfItIsTooLong) {
  EXPECT_EQ(send(data_.size()), 1U);
  EXPECT_EQ(counters_.link_too_long, 1U);
}

TEST_F(Lone, IsLeftIfTheQueueIsFull) {
  refusals = 1;
  EXPECT_EQ(send(10), 0U);
  EXPECT_TRUE(batch_.take_no_buffer());
  EXPECT_EQ(send(10), 1U);
}

TEST_F(Lone, ThatWasAcceptedEndsARefusal) {
  refusals = 1;
  EXPECT_EQ(send(10), 0U);
  EXPECT_EQ(send(10), 1U);
  std::this_thread::sleep_for(std::chrono::milliseconds(11));
  refusals = 1;
  EXPECT_EQ(send(10), 0U) << "nothing was refused for so long";
  EXPECT_EQ(counters_.link_unsendable, 0U);
}

TEST_F(Submit, StopsWhereThereIsNoSpace) {
  bool full = false;
  for (int i = 0; i < 10000 && !full; ++i) {
    batch_.clear();
    add(1, 1000);
    add(1, 1000);
    const SendBatch::Outcome outcome = batch_.submit(in_.number(), counters_);
    full = outcome.buffers_full;
    EXPECT_EQ(outcome.frames == 2, !full);
  }
  EXPECT_TRUE(full);
  EXPECT_EQ(counters_.link_unsendable + counters_.link_too_long, 0U);
}

TEST_F(Submit, DropsWhatIsTooLongAndGoesOn) {
  add(1, 10);
  add(2, data_.size());
  add(1, 10);
  const SendBatch::Outcome outcome = batch_.submit(in_.number(), counters_);
  EXPECT_EQ(outcome.frames, 4U);
  EXPECT_EQ(counters_.link_too_long, 2U);
  EXPECT_TRUE(batch_.offload());
}

TEST_F(Submit, DropsWhatCannotBeSentAtAll) {
  out_.reset();
  add(1, 10);
  add(1, 10);
  const SendBatch::Outcome outcome = batch_.submit(in_.number(), counters_);
  EXPECT_EQ(outcome.frames, 2U);
  EXPECT_EQ(counters_.link_unsendable, 2U);
}

TEST_F(Submit, GivesOffloadUpWhenARunIsRefused) {
  batch_.open(5, 10).msg_flags = 0;
  batch_.add(ConstBytes(data_).first(10));
  msghdr& refused = batch_.open(5, 10);
  batch_.add(ConstBytes(data_).first(10));
  sockaddr_storage nonsense{};
  refused.msg_name = &nonsense;  // EINVAL, as from a kernel without segmentation
  refused.msg_namelen = 1;
  const SendBatch::Outcome outcome = batch_.submit(in_.number(), counters_);
  EXPECT_EQ(outcome.frames, 5U);
  EXPECT_FALSE(outcome.buffers_full);
  EXPECT_FALSE(batch_.offload());
  EXPECT_EQ(counters_.link_offload_refused, 1U);

  batch_.clear();
  add(1, data_.size());
  EXPECT_EQ(batch_.submit(in_.number(), counters_).frames, 1U);
  EXPECT_TRUE(batch_.offload()) << "the frames were too long: the offload was not to blame";
}

/// Sends a run of frames that the device refuses `times` in a row and then takes.
class Refused : public Submit {
 protected:
  std::size_t submit_refused(int times, std::size_t frames = 2) {
    refusals = times;
    std::size_t sent = 0;
    for (int i = 0; i <= times && sent == 0; ++i) {
      batch_.clear();
      add(frames, 10);
      sent = batch_.submit(in_.number(), counters_).frames;
    }
    std::byte taken[64];
    while (recv(out_.number(), taken, sizeof taken, MSG_DONTWAIT) > 0) continue;
    refusals = 0;
    return sent;
  }
};

TEST_F(Refused, ADeviceThatNeverTookARunIsGivenUpSoon) {
  submit_refused(2);
  EXPECT_TRUE(batch_.offload());
  batch_ = SendBatch{true};
  submit_refused(3);
  EXPECT_FALSE(batch_.offload());
  EXPECT_EQ(counters_.link_offload_refused, 1U);
}

TEST_F(Refused, ADeviceThatHasTakenOneIsRetriedForLong) {
  EXPECT_EQ(submit_refused(0), 2U);
  for (int i = 0; i < 3; ++i) submit_refused(900);
  EXPECT_TRUE(batch_.offload()) << "each time it took one in the end";
  submit_refused(1000);
  EXPECT_FALSE(batch_.offload());
}

/// As while a cable is cut: found by the test of links that pulls one out.
TEST_F(Refused, WhereASingleFrameFindsNoSpaceEitherTheOffloadIsNotToBlame) {
  for (int again = 0; again < 3; ++again) {
    refusals = 4;
    for (int i = 0; i < 3; ++i) {
      batch_.clear();
      add(2, 10);
      batch_.submit(in_.number(), counters_);
    }
    EXPECT_FALSE(batch_.offload());
    batch_.clear();
    add(1, 10);
    EXPECT_TRUE(batch_.submit(in_.number(), counters_).buffers_full);
    EXPECT_TRUE(batch_.offload());
    EXPECT_EQ(counters_.link_offload_refused, 0U);
  }
}

/// For longer than a queue is full: its length is to blame, and the sender hears of it as of any loss.
TEST_F(Refused, AFrameThatIsRefusedForGoodCountsAsLostUntilOneSoLongLeaves) {
  const auto submit = [this](std::size_t size, bool taken) {
    refusals = taken ? 0 : 1;
    batch_.clear();
    add(1, size);
    const std::size_t sent = batch_.submit(in_.number(), counters_).frames;
    std::byte arrived;
    while (recv(out_.number(), &arrived, sizeof arrived, MSG_DONTWAIT) > 0) continue;
    refusals = 0;
    return sent;
  };
  const auto begin = std::chrono::steady_clock::now();
  std::size_t tries = 0;
  for (; submit(1400, false) == 0; ++tries) {
    EXPECT_EQ(submit(300, true), 1U) << "a shorter one says nothing";
    ASSERT_LT(std::chrono::steady_clock::now() - begin, 10s);
  }
  EXPECT_GT(tries, 100U) << "a full queue is waited for";
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 10ms);
  EXPECT_EQ(counters_.link_unsendable, 1U);
  EXPECT_EQ(submit(1400, false), 1U) << "known";
  EXPECT_EQ(submit(1500, false), 1U) << "longer ones as well";
  EXPECT_EQ(submit(1300, false), 0U) << "of this length nothing is known yet";
  EXPECT_EQ(submit(1400, true), 1U);
  EXPECT_EQ(submit(1400, false), 0U) << "the queue may be full again";
  EXPECT_EQ(counters_.link_unsendable, 3U);
}

TEST_F(Refused, SingleFramesDoNotCount) {
  submit_refused(10, 1);
  EXPECT_TRUE(batch_.offload());
  EXPECT_EQ(counters_.link_offload_refused, 0U);
}

}  // namespace
}  // namespace cluster::os
