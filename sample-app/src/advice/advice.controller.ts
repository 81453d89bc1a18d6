import { Body, Controller, Param, Post } from '@nestjs/common';
import { AdviceService, type Message } from './advice.service.js';

interface Answered {
  history: string[];
  places: number[];
}

@Controller('chats/:chat')
export class AdviceController {
  constructor(private readonly advice: AdviceService) {}

  @Post('messages')
  answer(@Param('chat') chat: string, @Body('text') text: string): Promise<Answered> {
    return answered(text, (message) => this.advice.answer(chat, message));
  }

  @Post('newest-message')
  answerNewest(@Param('chat') chat: string, @Body('text') text: string): Promise<Answered> {
    return answered(text, (message) => this.advice.answerNewest(chat, message));
  }

  @Post('messages-without-lock')
  answerWithoutLock(@Param('chat') chat: string, @Body('text') text: string): Promise<Answered> {
    return answered(text, (message) => this.advice.answerWithoutLock(chat, message));
  }
}

async function answered(text: string, answer: (message: Message) => Promise<string[]>): Promise<Answered> {
  const message: Message = { text, places: [] };
  return { history: await answer(message), places: message.places };
}
