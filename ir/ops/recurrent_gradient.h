// Gradients of recurrent layers (recurrent.cpp).
#pragma once

#include "ir/formula/gradient.h"

namespace tilewright::ir {

void gradient_of_rnn(GradientContext& c);
void gradient_of_gru(GradientContext& c);
void gradient_of_lstm(GradientContext& c);

}  // namespace tilewright::ir
