import { Body, Controller, Get, HttpCode, Param, ParseIntPipe, Post, Put } from '@nestjs/common';
import { AccountsService } from './accounts.service.js';

@Controller('accounts')
export class AccountsController {
  constructor(private readonly accounts: AccountsService) {}

  @Get(':name')
  async show(@Param('name') name: string): Promise<{ balance: number }> {
    return { balance: await this.accounts.balance(name) };
  }

  @Put(':name')
  @HttpCode(204)
  async open(@Param('name') name: string, @Body('balance', ParseIntPipe) balance: number): Promise<void> {
    await this.accounts.open(name, balance);
  }

  @Post(':from/transfers')
  @HttpCode(204)
  async transfer(
    @Param('from') from: string,
    @Body('to') to: string,
    @Body('amount', ParseIntPipe) amount: number,
  ): Promise<void> {
    await this.accounts.transfer(from, to, amount);
  }
}
