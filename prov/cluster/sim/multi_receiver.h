// The part of an application that posts buffers for many messages (FI_MULTI_RECV), and judges how they are
// filled:
//
//   packed     messages follow each other from the first byte on, without gaps, in the order of matching
//   apart      no byte of a reported message is written again, and no byte behind the last message is written
//   released   the buffer is released once, after everything else that is reported about it. It then must
//              have less free space than the application asked for, unless it was canceled, or it or a
//              message failed
//
// The oracle judges the messages themselves, as for all receives.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "engine/engine.h"
#include "sim/application_environment.h"
#include "sim/quarantine.h"

namespace cluster::sim {

class MultiReceiver {
 public:
  MultiReceiver(const ApplicationEnvironment& environment, SeededRandom& random, Quarantine& quarantine)
      : env_(environment), random_(random), quarantine_(quarantine) {}

  /// Returns true if the completion belongs to one of these buffers.
  static bool owns(const protocol::Completion& completion);
  /// Keeps as many buffers posted as the plan says. Returns true if it posted one.
  bool post_buffers(std::size_t largest_message);
  /// Judges a completion. Returns the message that it reports, or null.
  const Message* complete(const protocol::Completion& completion);
  void cancel_random();
  void cancel_all();
  bool idle() const { return buffers_.empty(); }

 private:
  /// A message in a buffer.
  struct Piece {
    std::size_t offset = 0;
    std::size_t length = 0;
    std::uint64_t sender = 0;  ///< the process that sent it
    std::uint32_t order = 0;   ///< position among the messages of its sender
    bool ordered = false;      ///< the order of matching applies to it
  };
  struct Buffer {
    Receive receive;
    std::size_t min_multi_recv = 0;
    std::unique_ptr<std::byte[]> bytes;
    std::vector<Piece> pieces;
    bool piece_failed = false;  ///< a message failed, and its piece is a gap
    bool failed = false;        ///< the buffer itself ended with an error
  };

  void cancel(std::uint64_t context, Buffer& buffer);
  const Message* take_piece(Buffer& buffer, const protocol::Completion& completion);
  void release(Buffer& buffer);
  [[noreturn]] static void fail(const Buffer& buffer, const char* what);

  ApplicationEnvironment env_;
  SeededRandom& random_;
  Quarantine& quarantine_;
  std::map<std::uint64_t, Buffer> buffers_;  ///< by context
  std::vector<std::uint64_t> posted_;        ///< contexts in the order they were posted
  std::uint64_t contexts_ = 0;
};

}  // namespace cluster::sim
