// The part of an application that posts buffers for many messages (FI_MULTI_RECV) and judges how they are
// filled:
//
//   packed      messages lie one behind the other from the first byte on, without gaps, in the order of matching
//   apart       no byte of a message that has been reported is written again, none behind the last message at all
//   released    once, after everything else about the buffer, and only if less than the least space is left or
//               the buffer was canceled or failed
//
// What the messages are is the oracle's to judge, as for all receives.
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

  /// True if the completion belongs to one of these buffers.
  static bool owns(const protocol::Completion& completion);
  /// Keeps as many buffers posted as the plan says; true if one was posted.
  bool post_buffers(std::size_t largest_message);
  /// Judges a completion. The message it reports, or null.
  const Message* complete(const protocol::Completion& completion);
  void cancel_random();
  void cancel_all();
  bool idle() const { return buffers_.empty(); }

 private:
  /// A message in a buffer.
  struct Piece {
    std::size_t offset = 0;
    std::size_t length = 0;
    std::uint64_t sender = 0;  ///< process that sent it
    std::uint32_t order = 0;   ///< among the messages of its sender
    bool ordered = false;      ///< matching order holds for it
  };
  struct Buffer {
    Receive receive;
    std::size_t min_multi_recv = 0;
    std::unique_ptr<std::byte[]> bytes;
    std::vector<Piece> pieces;
    bool piece_failed = false;  ///< a message never came: its piece is a gap
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
