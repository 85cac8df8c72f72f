// Headers that nearly every test file includes, compiled once per build: GoogleTest alone costs two seconds a
// file. Each test file still names what it uses, so it also compiles without this.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>
