// The part of an application that sends messages. It poisons each buffer as soon as the library gives it
// back. So a send that still reads such a buffer sends wrong bytes.
#pragma once

#include <memory>
#include <unordered_map>

#include "engine/engine.h"
#include "sim/application_environment.h"
#include "sim/quarantine.h"

namespace cluster::sim {

class MessageSender {
 public:
  MessageSender(const ApplicationEnvironment& environment, SeededRandom& random, Quarantine& quarantine)
      : env_(environment), random_(random), quarantine_(quarantine) {}

  /// Returns true if a composed message waits until the engine has space for it.
  bool must_retry() const { return retry_ != 0; }
  /// Draws a message to this host.
  void compose(HostNumber to);
  /// Gives the composed message to the engine. Returns false if the engine has no space for it.
  bool post();
  void complete(const protocol::Completion& completion);
  /// Returns how many sends have not completed yet.
  std::size_t under_way() const { return under_way_; }

 private:
  struct Buffer {
    std::unique_ptr<std::byte[]> bytes;
    std::size_t length = 0;
  };

  Message draw_message(HostNumber to);
  bool sent_short(const protocol::SendOp& op);
  void send_too_long(HostNumber to);
  void release(Buffer& buffer);

  ApplicationEnvironment env_;
  SeededRandom& random_;
  Quarantine& quarantine_;
  std::unordered_map<MessageNumber, Buffer> buffers_;
  MessageNumber retry_ = 0;
  std::size_t under_way_ = 0;
};

}  // namespace cluster::sim
