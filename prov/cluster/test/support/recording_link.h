// A link that records sent frames, for tests that read the frames of a flow or hand them to another flow. It
// never receives anything.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "link/link.h"
#include "wire/admit.h"

namespace cluster::test {

class RecordingLink final : public link::Link {
 public:
  const char* name() const override { return "recording"; }
  std::size_t frame_max() const override { return 1472; }
  std::size_t send_burst(std::span<const link::OutFrame> burst) override {
    for (const link::OutFrame& frame : burst) {
      std::vector<std::byte>& bytes = frames.emplace_back();
      for (std::size_t i = 0; i < frame.count; ++i) {
        bytes.insert(bytes.end(), frame.pieces[i].begin(), frame.pieces[i].end());
      }
    }
    return burst.size();
  }
  std::size_t seal_overhead() const override { return overhead; }
  std::size_t receive_burst(std::span<link::InFrame>) override { return 0; }
  std::size_t read_path_errors(std::span<link::PathError>) override { return 0; }
  void on_move(const MoveHandler& handler) override { moved = handler; }
  wire::FrameView read(std::size_t number) const {
    wire::FrameView view;
    EXPECT_EQ(wire::admit(frames.at(number), view), wire::Refusal::none);
    return view;
  }

  std::vector<std::vector<std::byte>> frames;
  std::size_t overhead = 0;
  MoveHandler moved;  ///< set by the user of the link
};

}  // namespace cluster::test
